// What every view writes with: preact's hooks, and html`…`, whose values are always text or attributes.
import { h } from '../lib/preact.js'
import htm from '../lib/htm.js'

export { render, Fragment } from '../lib/preact.js'
export { useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect } from '../lib/hooks.js'
export const html = htm.bind(h)
