package policy_test

import data.policy

pod(spec) := {"request": {"uid": "1", "object": {"metadata": {"name": "probe"}, "spec": spec}}}

test_plain_pod_is_admitted if {
	policy.main.response.allowed with input as pod({})
}

test_pod_in_the_hosts_namespaces_is_rejected if {
	answer := policy.main.response with input as pod({"hostPID": true, "hostNetwork": true})
	not answer.allowed
	answer.status.message == "pod \"probe\" may not use hostNetwork, hostPID"
}

test_settings_allow_what_they_name if {
	policy.main.response.allowed with input as pod({"hostPID": true}) with data.allowHostPID as true
}
