import type { Chapter } from '../../steps/step.ts';

const OWNER = 'the label owner is missing';

export const AS_APPLIED: Chapter = {
  title: '1.1 what you apply is what you test',
  steps: [
    ...['cap', 'ap', 'capg', 'apg'].map((type) => ({
      shows: `run evaluates a ${type} as it is applied`,
      sh: `portcullis run my-${type}/policy.yaml -r pod.yaml --fail-on deny`,
      code: 1,
      prints: [new RegExp(`"allowed":false.*${OWNER}`)],
    })),
    {
      shows: 'run evaluates a policy with parameters',
      sh: `portcullis run ../examples/toolforge/policy.yaml --manifests ../examples/toolforge/namespaces.yaml -r pod.yaml \
        --namespace tool-wikibot -o yaml | sed -n 's/^patch: //p' | base64 -d`,
      prints: [/"path":"\/spec\/securityContext\/runAsUser","value":52503/],
    },
    {
      shows: 'bench measures a policy as it is applied',
      sh: 'portcullis bench my-cap/policy.yaml -r pod.yaml -n 100',
      prints: [/^my-cap: denied|: denied, request of/m],
    },
    {
      shows: 'export prints policies of the cluster and of a namespace for API servers',
      sh: 'portcullis export my-cap/policy.yaml my-ap/policy.yaml | kubectl apply --dry-run=server -f -',
      prints: [
        /^validatingadmissionpolicy\S*\/my-cap created \(server dry run\)$/m,
        /^validatingadmissionpolicybinding\S*\/default\.my-ap created \(server dry run\)$/m,
      ],
    },
    {
      shows: 'export names a group, which has no counterpart',
      sh: 'portcullis export my-cap my-capg > /dev/null',
      prints: [/^note: left out, .*: capg\/my-capg \(a group\)$/m],
    },
    {
      shows: 'start --policies serves manifests without a cluster',
      sh: `portcullis scaffold request pod.yaml > request.json
        portcullis start --policies my-cap/policy.yaml --port 0 --operations-port 0 --data-dir served > served.log 2>&1 &
        server=$!
        until grep -q 'Ctrl-C stops' served.log; do kill -0 $server || exit 1; sleep 0.1; done
        url=$(grep -o 'https://localhost:[0-9]*' served.log | head -1)
        curl --silent --cacert served/pki/ca.crt -H 'Content-Type: application/json' -d @request.json $url/validate/kw.cap.my-cap
        kill $server; wait $server; echo " ended with $?"`,
      prints: [new RegExp(`"allowed":false.*${OWNER}`), /ended with 0$/m],
    },
    {
      shows: 'no suite of the examples repeats the settings of its policy',
      sh: "grep -L 'policy.yaml' ../examples/*/portcullis-test.yml; grep -l '^  settings:' ../examples/*/portcullis-test.yml; true",
      prints: [/^$/],
    },
    {
      shows: 'the suites of all examples pass',
      sh: 'portcullis test ../examples',
      prints: [/^✔ (\d+) of \1 cases passed/m],
    },
  ],
};
