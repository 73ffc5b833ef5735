module plimsoll.dev/testbed/node-tool

go 1.26.0
