// A scaler with the published protocol, as KEDA 2.20.2 has it.
module plimsoll.dev/testbed/external-scaler

go 1.26.0

require (
	github.com/kedacore/keda/v2 v2.20.2
	google.golang.org/grpc v1.81.1
)

require (
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260523011958-0a33c5d7ca68 // indirect
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af // indirect
)
