// Parts of manifests and test files, as text: they have comments, which a YAML writer has not.
import type { PolicyPlan } from './policy-plan.ts';

/** The key of every new policy: a label of objects. */
export const LABEL = 'owner';

const API_VERSION = 'policies.kubewarden.io/v1';

/** `apiVersion`, `kind` and `metadata`. */
export function headText({ type, name, namespace }: PolicyPlan): string {
  const place = namespace === undefined ? '' : `\n  namespace: ${namespace}`;
  return `apiVersion: ${API_VERSION}
kind: ${type}
metadata:
  name: ${name}${place}
`;
}

/** `rules`, at the indentation of a key of `spec`. */
export function rulesText({ kind }: PolicyPlan): string {
  return `  # The requests that the policy is asked about.
  rules:
    - apiGroups: [${textOf(kind.group)}]
      apiVersions: [${kind.version}]
      resources: [${kind.resource}]
      operations: [CREATE, UPDATE]
`;
}

/** The first lines of a test file. */
export function suiteHeadText({ namespace }: PolicyPlan): string {
  const defaults = namespace === undefined ? '' : `\ndefaults: {namespace: ${namespace}}\n`;
  return `# Run it with: portcullis test
policy: policy.yaml
${defaults}
cases:
`;
}

/** An object of the plan's kind, at the indentation of a key of a case. */
export function objectText({ kind }: PolicyPlan, name: string, labels: string): string {
  const { group, version } = kind;
  const spec = SPECS[`${group}/${kind.kind}`];
  return `    object:
      apiVersion: ${group === '' ? version : `${group}/${version}`}
      kind: ${kind.kind}
      metadata: {name: ${name}${labels === '' ? '' : `, labels: {${labels}}`}}
${spec === undefined ? '' : `      ${spec}\n`}`;
}

/** Specs of examples. Objects of other kinds have metadata only, which is all that new policies read. */
const SPECS: Readonly<Record<string, string>> = {
  '/Pod': "spec: {containers: [{name: web, image: 'example.com/shop/web:1.4.2'}]}",
  'apps/Deployment': 'spec: {replicas: 2}',
};

/** The kind in a sentence: `a Pod`. */
export function nounOf({ kind }: PolicyPlan): string {
  return `${/^[AEIO]/.test(kind.kind) ? 'an' : 'a'} ${kind.kind}`;
}

function textOf(text: string): string {
  return text === '' ? "''" : text;
}
