// Twenty policies for pods, of all kinds of modules, for the bench of audits.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { manifestsOf } from '../src/cli/policy/manifests.ts';

/** Where `file://./` of the examples is relative to. */
export const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));

const API = 'policies.kubewarden.io/v1';
/** waPC, Rego in both modes, and Pod Security. */
const OF_EXAMPLES = ['pod-privileged', 'required-labels', 'host-namespaces', 'container-limits', 'pod-security'];
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] };

/** Some read fields that replicas share, two the name. */
const EXPRESSIONS = [
  "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
  "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
  'object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && has(c.resources.limits.memory))',
  'object.spec.containers.all(c, !has(c.securityContext) || !c.securityContext.?privileged.orValue(false))',
  '!object.spec.?hostNetwork.orValue(false)',
  '!object.spec.?hostPID.orValue(false)',
  'object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))',
  "'app' in object.metadata.?labels.orValue({})",
  "'team' in object.metadata.?labels.orValue({})",
  "object.spec.containers.all(c, c.?imagePullPolicy.orValue('') != 'Always')",
  "object.spec.containers.all(c, c.?env.orValue([]).all(e, !e.name.startsWith('SECRET_')))",
  'object.spec.containers.size() < 10',
  "object.metadata.name.size() < 60 && !object.metadata.name.startsWith('test-')",
  "!request.name.endsWith('-tmp')",
];

interface PolicyManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Two versions of a policy, for the bench of previews: the second one rejects pods of one in 20 teams, too. */
export function previewVersions(): Readonly<Record<'before' | 'after', PolicyManifest>> {
  const [expression = ''] = EXPRESSIONS;
  return {
    before: celPolicy('previewed', expression, 'no'),
    after: celPolicy('previewed', `${expression} && object.metadata.labels.team != 'team-3'`, 'no'),
  };
}

export function auditPolicies(): readonly PolicyManifest[] {
  const cel = EXPRESSIONS.map((expression, index) => celPolicy(`cel-${index}`, expression, `rule ${index}`));
  const [latest, limits] = [EXPRESSIONS[0], EXPRESSIONS[2]].map((expression) => ({
    module: 'builtin:cel',
    settings: { validations: [{ expression, message: 'no' }] },
  }));
  const group: PolicyManifest = {
    apiVersion: API,
    kind: 'ClusterAdmissionPolicyGroup',
    metadata: { name: 'group' },
    spec: { rules: [RULE], policies: { latest, limits }, expression: 'latest() || limits()', message: 'neither' },
  };
  return [...cel, group, ...OF_EXAMPLES.map(example)];
}

function celPolicy(name: string, expression: string, message: string): PolicyManifest {
  const settings = { validations: [{ expression, message }] };
  const spec = { module: 'builtin:cel', mutating: false, rules: [RULE], settings };
  return { apiVersion: API, kind: 'ClusterAdmissionPolicy', metadata: { name }, spec };
}

/** Without its selector: it is for all namespaces. */
function example(name: string): PolicyManifest {
  const [manifest] = manifestsOf(readFileSync(`${EXAMPLES}/${name}/policy.yaml`, 'utf8'), name) as unknown as readonly [
    PolicyManifest,
  ];
  const { namespaceSelector: _selector, ...spec } = manifest.spec;
  return { ...manifest, spec: { ...spec, module: builtModule(name, String(spec['module'])) } };
}

function builtModule(name: string, module: string): string {
  return module.startsWith('builtin:') ? module : `file://./${name}/policy.wasm`;
}
