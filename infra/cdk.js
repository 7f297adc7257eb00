#!/usr/bin/env node
// Runs the CDK command that infra/package-lock.json pins, in the root of the repository; it is
// what `npx cdk` and the Makefile run. It first says all that is missing, then installs the
// command where it is not there in that version. The app builds the functions and the worker.
'use strict'
const { spawnSync } = require('node:child_process')
const { existsSync, readFileSync } = require('node:fs')
const path = require('node:path')

const infra = __dirname
const root = path.dirname(infra)
const args = process.argv.slice(2)

// values lists what an option was given, in the order in which it was.
function values(...names) {
  const found = []
  for (let i = 0; i < args.length; i++) {
    const [name, ...rest] = args[i].split('=')
    if (!names.includes(name)) continue
    found.push(rest.length > 0 ? rest.join('=') : (args[i + 1] ?? ''))
  }
  return found
}

// takesValue are the options whose value is the next word, which is no stack.
const takesValue = new RegExp('^(-[acorOPtr]|--(context|app|output|outputs-file|profile|role-arn|require-approval|tags|' +
  'parameters|toolkit-stack-name|change-set-name|method|progress|concurrency))$')

const command = args.find((a) => ['synth', 'synthesize', 'diff', 'deploy', 'bootstrap', 'destroy'].includes(a))

function check() {
  const context = {}
  for (const said of values('-c', '--context')) {
    const at = said.indexOf('=')
    if (at > 0) context[said.slice(0, at)] = said.slice(at + 1)
  }
  const { issuer = '', audience = '', target = '', region, account, ...rest } = context
  const settings = Object.entries(rest)
    .filter(([key, value]) => value !== '' && !key.includes(':'))
    .map(([key, value]) => `${key}=${value}`)
  const words = args.filter((a, i) => !a.startsWith('-') && !takesValue.test(args[i - 1] ?? ''))
  const stacks = words.filter((a) => a.includes('*') || /-(data|flow|watch|fleet|crew)$/.test(a))
  const asks = command === 'deploy' && values('--require-approval').length === 0 && !process.stdin.isTTY
  const goal = command === 'synthesize' ? 'synth' : command
  const done = spawnSync('sh', [path.join(infra, 'prerequisites.sh'), issuer, audience, target, settings.join(' '),
    goal, stacks.join(' '), asks ? 'nobody' : ''], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (done.status !== 0) process.exit(1)
}

function install() {
  const locked = JSON.parse(readFileSync(path.join(infra, 'package-lock.json'), 'utf8')).packages
  const there = Object.entries(locked).every(([at, { version, optional }]) => {
    const file = path.join(infra, at, 'package.json')
    return at === '' || optional || (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version)
  })
  if (there) return
  console.error('cdk: installing what infra/package-lock.json pins')
  const done = spawnSync('npm', ['ci', '--prefix', infra, '--no-audit', '--no-fund'], { stdio: ['ignore', 2, 2] })
  if (done.status !== 0) process.exit(1)
}

if (['synth', 'synthesize', 'diff', 'deploy'].includes(command)) check()
install()
// Bootstrapping runs in infra: in the root, CDK would run the app first, which wants a target.
const done = spawnSync(process.execPath, [path.join(infra, 'node_modules/aws-cdk/bin/cdk'), ...args], {
  cwd: command === 'bootstrap' ? infra : root,
  stdio: 'inherit',
  env: { JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION: '1', ...process.env },
})
process.exit(done.status ?? 1)
