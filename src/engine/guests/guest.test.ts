import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readMetadata } from '../../modules/index.ts';
import type { ExecutionMode } from '../../modules/index.ts';
import { valueAt } from '../../values/index.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { compileModule } from '../../wasm/index.ts';
import type { CompiledModule } from '../../wasm/index.ts';
import { ReplayPort } from '../capabilities/session.ts';
import { checkSettings, evaluate, readReview } from '../evaluate.ts';
import type { Verdict } from '../verdict/verdict.ts';
import { createGuest } from './guest.ts';
import type { HostPort } from '../capabilities/host-port.ts';
import { createPolicy } from '../loaded-policy.ts';
import type { LoadedPolicy, PolicyOptions } from '../loaded-policy.ts';
import type { SinglePolicyDefinition } from '../definition/policy-definition.ts';
import { TIMEOUT_MESSAGE } from '../verdict/verdict.ts';
import { bytes, podReview } from '../testing/reviews.ts';

const EXAMPLES = new URL('../../../examples/', import.meta.url);
/**
 * An example of every execution mode, one that mutates and one that reads the cluster. Their sources are next to them.
 */
const POLICIES: Readonly<Record<string, ExecutionMode>> = {
  'required-labels': 'kubewarden-wapc',
  'default-seccomp': 'kubewarden-wapc',
  'namespace-owner': 'kubewarden-wapc',
  'image-registries': 'wasi',
  'host-namespaces': 'opa',
  'container-limits': 'gatekeeper',
};

const NOTHING: HostPort = {
  request: (capability) => {
    throw new Error(`${capability} is not there`);
  },
};

function read(name: string, file: string): Buffer {
  return readFileSync(new URL(`${name}/${file}`, EXAMPLES));
}

function compile(name: string): CompiledModule {
  const isolation = POLICIES[name] === 'wasi' ? 'fresh' : 'restore';
  return compileModule(read(name, 'policy.wasm'), { memoryLimitBytes: 128 * 1024 * 1024, isolation });
}

function settingsOf(name: string): unknown {
  const [manifest] = parseYaml(read(name, 'policy.yaml').toString());
  return valueAt(manifest, 'spec', 'settings') ?? {};
}

function load(
  name: string,
  options: Partial<PolicyOptions> = {},
  changes: Partial<SinglePolicyDefinition> = {},
): LoadedPolicy {
  const guest = createGuest({ compiled: compile(name), mode: POLICIES[name]! });
  assert.equal(guest.mode, POLICIES[name]);
  const definition: SinglePolicyDefinition = {
    kind: 'policy',
    id: name,
    mode: 'protect',
    module: 'policy.wasm',
    allowedToMutate: true,
    settingsJson: JSON.stringify(settingsOf(name)),
    contextAwareResources: readMetadata(read(name, 'policy.wasm'))?.contextAwareResources ?? [],
    hostCapabilities: ['*'],
    failurePolicy: 'Fail',
    ...changes,
  };
  return createPolicy(definition, () => guest, { port: NOTHING, log: () => undefined, ...options });
}

function verdictOf(policy: LoadedPolicy, body: Uint8Array, route: 'validate' | 'validate_raw' = 'validate'): Verdict {
  return evaluate(policy, readReview(route, body), { route }).verdict;
}

function messageOf(response: Verdict): string {
  return response.message ?? '';
}

for (const name of Object.keys(POLICIES)) {
  test(`the example ${name} (${POLICIES[name]}) allows and denies its requests by their names`, () => {
    const files = readdirSync(new URL(`${name}/`, EXAMPLES));
    const session = files.includes('session.yml') ? { port: new ReplayPort(read(name, 'session.yml').toString()) } : {};
    const policy = load(name, session);
    assert.deepEqual(checkSettings(policy), { valid: true });
    for (const file of readdirSync(new URL(`${name}/requests/`, EXAMPLES))) {
      const response = verdictOf(policy, read(name, `requests/${file}`));
      assert.equal(response.allowed, !file.startsWith('rejected'), `${file}: ${messageOf(response)}`);
      assert.equal(response.patch !== undefined, file.startsWith('mutated'), file);
    }
  });
}

test('a guest that runs out of fuel is a timeout, and answers the next request', () => {
  for (const name of ['required-labels', 'image-registries', 'host-namespaces']) {
    const starved = load(name, { defaultTimeoutSeconds: 1e-7 });
    assert.equal(messageOf(verdictOf(starved, bytes(podReview()))), TIMEOUT_MESSAGE, name);
    assert.equal(messageOf(verdictOf(starved, bytes(podReview()))), TIMEOUT_MESSAGE, name);
  }
});

test('a host capability that was not granted denies, and the message names the field to change', () => {
  const response = verdictOf(load('namespace-owner', {}, { hostCapabilities: [] }), bytes(podReview()));
  assert.equal(response.allowed, false);
  assert.match(messageOf(response), /add "kubernetes\/get_resource" to its hostCapabilities/);
});

test('Rego policies in OPA mode accept raw requests, those in Gatekeeper mode do not', () => {
  const raw = bytes({ request: { uid: 'u', object: { spec: { hostNetwork: true } } } });
  assert.equal(verdictOf(load('host-namespaces'), raw, 'validate_raw').allowed, false);
  const refused = verdictOf(load('container-limits'), raw, 'validate_raw');
  assert.equal(messageOf(refused), 'internal server error: Gatekeeper does not support raw validation requests');
});

/** A hand-written waPC module that answers every operation with one text of less than 64 bytes. */
function answering(text: string): CompiledModule {
  const name = (value: string): number[] => [value.length, ...Buffer.from(value)];
  const section = (id: number, content: readonly number[]): number[] => [id, content.length, ...content];
  const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const module = [
    ...magic,
    ...section(1, [2, 0x60, 2, 0x7f, 0x7f, 0, 0x60, 2, 0x7f, 0x7f, 1, 0x7f]),
    ...section(2, [1, ...name('wapc'), ...name('__guest_response'), 0, 0]),
    ...section(3, [1, 1]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('__guest_call'), 0, 1]),
    // i32.const 0, i32.const length, call __guest_response, i32.const 1
    ...section(10, [1, 10, 0, 0x41, 0, 0x41, text.length, 0x10, 0, 0x41, 1, 0x0b]),
    ...section(11, [1, 0, 0x41, 0, 0x0b, ...name(text)]),
  ];
  return compileModule(Uint8Array.from(module), { memoryLimitBytes: 1024 * 1024, isolation: 'restore' });
}

test('a module of another protocol is refused, and the message names both', () => {
  for (const answer of ['"v2"', 'v1', '']) {
    const guest = createGuest({ compiled: answering(answer), mode: 'kubewarden-wapc' });
    const policy = load('required-labels');
    assert.ok(policy.kind === 'policy');
    assert.throws(() => checkSettings({ ...policy, unit: { ...policy.unit, guest } }), {
      code: 'protocol-unsupported',
      message: /expected "v1", got /,
    });
  }
});

test('a guest with an invalid answer denies, with the mistake', () => {
  const policy = load('required-labels');
  assert.ok(policy.kind === 'policy');
  for (const [answer, message] of [
    ['garbage', /^internal server error: the policy's answer cannot be read: expected JSON$/],
    ['{"accepted":"yes"}', /accepted: expected true or false, got string$/],
    ['', /got nothing$/],
  ] as const) {
    const guest = createGuest({ compiled: answering(answer), mode: 'kubewarden-wapc' });
    const response = verdictOf({ ...policy, unit: { ...policy.unit, guest } }, bytes(podReview()));
    assert.equal(response.allowed, false);
    assert.match(messageOf(response), message);
  }
});

test('a module cannot be loaded in another mode than it was built for', () => {
  assert.throws(() => createGuest({ compiled: compile('required-labels'), mode: 'opa' }), { name: 'WasmError' });
  assert.throws(() => createGuest({ compiled: compile('host-namespaces'), mode: 'kubewarden-wapc' }), {
    name: 'WasmError',
  });
});
