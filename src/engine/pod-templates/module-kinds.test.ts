import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { applyJsonPatch, valueAt, WORKLOADS } from '../../resources/index.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { compileModule } from '../../wasm/index.ts';
import { createBuiltinGuest } from '../guests/builtin-guest.ts';
import { evaluate, readReview } from '../evaluate.ts';
import { createGuest } from '../guests/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { createPolicy } from '../loaded-policy.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import type { PolicyGuest } from '../guests/index.ts';
import { bytes } from '../testing/reviews.ts';
import type { Verdict } from '../verdict/verdict.ts';

const EXAMPLES = new URL('../../../examples/', import.meta.url);

/** An example of every module kind that is for pods. */
const MODULES = {
  'default-seccomp': 'kubewarden-wapc',
  'image-registries': 'wasi',
  'host-namespaces': 'opa',
  'container-limits': 'gatekeeper',
  'pinned-images': 'cel',
  'pod-security': 'pod-security',
  'pod-profile': 'pod-profile',
} as const;

type Example = keyof typeof MODULES;

function read(name: Example, file: string): Buffer {
  return readFileSync(new URL(`${name}/${file}`, EXAMPLES));
}

function settingsOf(name: Example): JsonValue {
  const [policy] = parseYaml(read(name, 'policy.yaml').toString()) as JsonObject[];
  return valueAt(policy, 'spec', 'settings') ?? {};
}

function guestOf(name: Example): PolicyGuest {
  const mode = MODULES[name];
  if (mode === 'cel' || mode === 'pod-security' || mode === 'pod-profile') {
    return createBuiltinGuest(mode);
  }
  const isolation = mode === 'wasi' ? 'fresh' : 'restore';
  const compiled = compileModule(read(name, 'policy.wasm'), { memoryLimitBytes: 128 * 1024 * 1024, isolation });
  return createGuest({ compiled, mode });
}

function load(name: Example): LoadedPolicy {
  const guest = guestOf(name);
  const definition = {
    kind: 'policy',
    id: name,
    mode: 'protect',
    module: 'm',
    allowedToMutate: true,
    settingsJson: JSON.stringify(settingsOf(name)),
    contextAwareResources: [],
    hostCapabilities: [],
    failurePolicy: 'Fail',
    podTemplates: 'Enforce',
  } as const;
  const request = (): never => assert.fail('no host call is expected');
  return createPolicy(definition, () => guest, { port: { request }, log: () => undefined });
}

function verdictOf(policy: LoadedPolicy, review: unknown): Verdict {
  return evaluate(policy, readReview('validate', bytes(review)), { route: 'validate' }).verdict;
}

/** The creation of a workload whose pods are that of a review. */
function workloadReview(review: JsonObject, kind: string): { readonly review: JsonObject; readonly path: string[] } {
  const { group, resource, path } = WORKLOADS.find((one) => one.kind === kind) ?? assert.fail(kind);
  const request = valueAt(review, 'request');
  const pod = valueAt(request, 'object');
  assert.ok(isJsonObject(request) && isJsonObject(pod));
  const { labels, annotations } = (pod['metadata'] ?? {}) as JsonObject;
  const metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
  const template = { metadata, spec: pod['spec'] ?? null };
  const inner = path.reduceRight<JsonValue>((value, key) => ({ [key]: value }), template) as JsonObject;
  const kinds = { kind: { group, version: 'v1', kind }, resource: { group, version: 'v1', resource } };
  const named = { name: valueAt(pod, 'metadata', 'name') ?? 'web', namespace: 'shop' };
  const object = { apiVersion: `${group}/v1`, kind, metadata: named, ...inner };
  const { requestKind: _k, requestResource: _r, ...rest } = request;
  return { review: { ...review, request: { ...rest, ...kinds, object } }, path: [...path] };
}

const names = Object.keys(MODULES) as Example[];

for (const name of names) {
  describe(`the example ${name} (${MODULES[name]}) on pod templates`, () => {
    const policy = load(name);
    for (const file of readdirSync(new URL(`${name}/requests/`, EXAMPLES))) {
      const pod = JSON.parse(read(name, `requests/${file}`).toString()) as JsonObject;
      for (const kind of ['Deployment', 'CronJob']) {
        it(`answers a ${kind} as the pod of ${file}`, () => {
          const { review, path } = workloadReview(pod, kind);
          const [ofPod, ofWorkload] = [verdictOf(policy, pod), verdictOf(policy, review)];
          assert.equal(ofWorkload.allowed, !file.startsWith('rejected'));
          const place = `in the pod template (${path.join('.')}): `;
          assert.equal(ofWorkload.message, ofPod.message && `${place}${ofPod.message}`);
          assert.deepEqual(ofWorkload.warnings, ofPod.warnings?.map((text) => `${place}${text}`) ?? null);
          assert.deepEqual(patchedSpec(ofWorkload, review, path), patchedSpec(ofPod, pod, []));
        });
      }
    }
  });
}

function patchedSpec({ patch }: Verdict, review: JsonObject, path: readonly string[]): JsonValue | undefined {
  const object = valueAt(review, 'request', 'object');
  const after = applyJsonPatch(object as JsonObject, JSON.parse(patch ?? '[]') as JsonValue[]);
  return valueAt(after, ...path, 'spec');
}

it('admits by id what has no template to check, and evaluates the deletion of a workload itself', () => {
  const policy = load('pinned-images');
  const rejected = JSON.parse(read('pinned-images', 'requests/rejected.json').toString()) as JsonObject;
  const { review } = workloadReview(rejected, 'Deployment');
  const request = review['request'] as JsonObject;
  const updated = { ...request, operation: 'UPDATE', oldObject: request['object'] ?? null };
  assert.equal(verdictOf(policy, { ...review, request: updated }).allowed, true);
  const deleted = { ...request, operation: 'DELETE', object: null, oldObject: request['object'] ?? null };
  assert.match(verdictOf(policy, { ...review, request: deleted }).message ?? '', /no such key|null|failed/);
});
