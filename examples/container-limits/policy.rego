# container-limits: rejects pods whose containers have no limits for memory and CPU, or higher ones than allowed.
#
# A policy in the form of Gatekeeper: the settings come as `input.parameters`, the request as `input.review`, and every
# violation is one reason to reject.
#
# Settings: memory (such as "512Mi") and cpu (such as "2" or "500m"); a resource that the settings leave out is free.
package policy

violation contains {"msg": msg} if {
	some container in containers
	some resource in ["cpu", "memory"]
	input.parameters[resource]
	not container.resources.limits[resource]
	msg := sprintf("container %q has no %s limit", [container.name, resource])
}

violation contains {"msg": msg} if {
	some container in containers
	some resource in ["cpu", "memory"]
	highest := input.parameters[resource]
	limit := container.resources.limits[resource]
	units.parse(limit) > units.parse(highest)
	msg := sprintf("container %q has a %s limit of %s, at most %s is allowed", [container.name, resource, limit, highest])
}

containers := [container |
	some list in ["initContainers", "containers"]
	some container in input.review.object.spec[list]
]
