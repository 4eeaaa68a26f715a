package policy_test

import data.policy

pod(limits) := {
	"parameters": {"memory": "512Mi", "cpu": "2"},
	"review": {"object": {"spec": {"containers": [{"name": "web", "resources": {"limits": limits}}]}}},
}

messages(limits) := found if {
	found := {violation.msg | some violation in policy.violation} with input as pod(limits)
}

test_limits_within_bounds if {
	messages({"cpu": "500m", "memory": "512Mi"}) == set()
}

test_missing_limits if {
	messages({}) == {`container "web" has no cpu limit`, `container "web" has no memory limit`}
}

test_limits_too_high if {
	messages({"cpu": "2500m", "memory": "1Gi"}) == {
		`container "web" has a cpu limit of 2500m, at most 2 is allowed`,
		`container "web" has a memory limit of 1Gi, at most 512Mi is allowed`,
	}
}
