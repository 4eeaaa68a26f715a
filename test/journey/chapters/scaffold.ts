import type { Chapter, Step } from '../../steps/step.ts';

/** The kinds of policies, as `--type` names them. */
const TYPES = ['cap', 'ap', 'capg', 'apg'] as const;

function scaffolded(shows: string, name: string, flags: string): Step {
  return {
    shows,
    sh: `portcullis scaffold policy ${name} ${flags} && portcullis test ${name}`,
    prints: [new RegExp(`^Wrote ${name}/policy\\.yaml$`, 'm'), /^✔ (\d+) of \1 cases passed/m],
  };
}

export const SCAFFOLD: Chapter = {
  title: '1.4 scaffold',
  steps: [
    ...TYPES.map((type) => scaffolded(`writes a ${type} whose tests pass`, `my-${type}`, `--type ${type}`)),
    scaffolded('writes a policy that changes objects', 'my-mutating', '--mutating --resource deployments'),
    {
      shows: 'writes policies in Rego with the line that builds them, for both entry points',
      sh: 'for language in rego gatekeeper; do portcullis scaffold policy my-$language --language $language; done',
      prints: [/opa build -t wasm -e policy\/main /, /opa build -t wasm -e policy\/violation /],
    },
    {
      shows: 'prints the manifest of a module, which the cluster accepts',
      sh: `portcullis scaffold manifest ../examples/container-limits/policy.wasm --title limits --settings-json '{"memory": "1Gi", "cpu": "2"}' \
        | portcullis apply --dry-run=server -f -`,
      prints: [/^clusteradmissionpolicy\S*\/limits created \(server dry run\)$/m],
    },
    {
      shows: 'prints the request for an object, which run takes',
      sh: 'portcullis scaffold request pod.yaml --user alice | portcullis run request-facts.yaml -r -',
      prints: [/CREATE by alice in default, was nothing/],
    },
  ],
};
