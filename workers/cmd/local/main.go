// Command local serves Punctual on localhost; make run starts it.
package main

import (
	"punctual/workers/handler"
	"punctual/workers/laptop"
)

func main() { laptop.Main(handler.All) }
