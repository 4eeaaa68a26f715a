# host-namespaces: rejects pods that share the network, the process ids or the IPC of their node.
#
# Settings: allowHostNetwork, allowHostPID, allowHostIPC; all false unless told. The server gives them as `data`, the
# request as `input.request`.
package policy

main := {
	"apiVersion": "admission.k8s.io/v1",
	"kind": "AdmissionReview",
	"response": response,
}

response := {
	"uid": input.request.uid,
	"allowed": true,
} if {
	count(violations) == 0
}

response := {
	"uid": input.request.uid,
	"allowed": false,
	"status": {"message": sprintf("pod %q may not use %s", [name, concat(", ", sort(violations))])},
} if {
	count(violations) > 0
}

violations contains "hostNetwork" if {
	spec.hostNetwork
	not data.allowHostNetwork
}

violations contains "hostPID" if {
	spec.hostPID
	not data.allowHostPID
}

violations contains "hostIPC" if {
	spec.hostIPC
	not data.allowHostIPC
}

spec := input.request.object.spec

default name := ""

name := input.request.object.metadata.name
