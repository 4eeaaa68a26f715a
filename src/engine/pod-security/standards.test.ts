import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { MAX_ENTRIES } from '../values/json-shape.ts';
import { describeViolations, MALFORMED } from './standards.ts';
import { evaluatePodSecurity } from './testing/evaluate-pod-security.ts';
import type { StandardsViolation } from './standards.ts';

type Json = Record<string, unknown>;

const HARDENED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** A pod that restricted allows, with every kind of field that the standards read. */
function hardenedPod(): { metadata: Json; spec: Json } {
  const handler = { httpGet: { port: 80, host: '' }, tcpSocket: { port: 80, host: '' } };
  const container = (name: string): Json => ({
    name,
    image: 'registry.example/app',
    lifecycle: { postStart: handler, preStop: handler },
    livenessProbe: handler,
    readinessProbe: handler,
    startupProbe: handler,
    ports: [{ containerPort: 80, hostPort: 0 }],
    securityContext: {
      allowPrivilegeEscalation: false,
      appArmorProfile: { type: 'RuntimeDefault' },
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
      privileged: false,
      procMount: 'Default',
      runAsNonRoot: true,
      runAsUser: 1_000,
      seLinuxOptions: { type: 'container_t', user: '', role: '' },
      seccompProfile: { type: 'RuntimeDefault' },
      windowsOptions: { hostProcess: false },
    },
  });
  return {
    metadata: { name: 'app', annotations: { note: 'text' } },
    spec: {
      containers: [container('app')],
      ephemeralContainers: [container('debug')],
      hostIPC: false,
      hostNetwork: false,
      hostPID: false,
      hostUsers: true,
      initContainers: [container('init')],
      os: { name: 'linux' },
      runtimeClassName: 'runc',
      securityContext: {
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
        sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }],
      },
      volumes: [
        { name: 'tmp', emptyDir: {} },
        { name: 'code', configMap: { name: 'code' } },
      ],
    },
  };
}

function restricted(spec: unknown, metadata: unknown = {}): readonly StandardsViolation[] {
  return evaluatePodSecurity('restricted', 'latest', metadata, spec);
}

test('a hardened pod is admitted at every level', () => {
  const { metadata, spec } = hardenedPod();
  assert.deepEqual(restricted(spec, metadata), []);
  assert.deepEqual(evaluatePodSecurity('baseline', 'v1.0', metadata, spec), []);
});

test('privileged allows everything, even values that are no pods', () => {
  assert.deepEqual(evaluatePodSecurity('privileged', 'latest', {}, { hostPID: true }), []);
  assert.deepEqual(evaluatePodSecurity('privileged', 'latest', 1, 'x'), []);
});

test('a violation names check, version, containers and the fields to change', () => {
  const spec = {
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    initContainers: [{ name: 'init', securityContext: { ...HARDENED, privileged: true } }],
    containers: [
      { name: 'ok', securityContext: HARDENED },
      { name: 'app', securityContext: HARDENED },
    ],
    ephemeralContainers: [{ name: 'debug', securityContext: { ...HARDENED, privileged: true } }],
  };
  assert.deepEqual(restricted(spec), [
    {
      check: 'privileged',
      since: 'v1.0',
      reason: 'privileged',
      detail: 'containers "init", "debug" must not set securityContext.privileged=true',
      containers: ['init', 'debug'],
      fields: [
        'spec.initContainers[0].securityContext.privileged',
        'spec.ephemeralContainers[0].securityContext.privileged',
      ],
    },
  ]);
});

test('the field of a violation leads to the value', () => {
  const spec = {
    hostPID: true,
    securityContext: { sysctls: [{ name: 'kernel.msgmax' }], seLinuxOptions: { type: 'spc_t', role: 'r' } },
    containers: [
      {
        name: 'a',
        ports: [{ containerPort: 1 }, { hostPort: 80 }],
        lifecycle: { preStop: { tcpSocket: { host: 'h' } } },
      },
    ],
    volumes: [
      { name: 'v', emptyDir: {} },
      { name: 'w', hostPath: { path: '/' } },
    ],
  };
  const annotations = { 'container.apparmor.security.beta.kubernetes.io/a': 'unconfined' };
  const violations = evaluatePodSecurity('baseline', 'latest', { annotations }, spec);
  assert.deepEqual(
    violations.flatMap(({ fields }) => fields),
    [
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]',
      'spec.hostPID',
      'spec.volumes[1].hostPath',
      'spec.containers[0].ports[1].hostPort',
      'spec.containers[0].lifecycle.preStop.tcpSocket.host',
      'spec.securityContext.seLinuxOptions.type',
      'spec.securityContext.seLinuxOptions.role',
      'spec.securityContext.sysctls[0].name',
    ],
  );
});

test('a volume without a source is an emptyDir, as in API servers; one with an unknown source is not', () => {
  const reasons = (volume: Json): readonly string[] =>
    restricted({ ...hardenedPod().spec, volumes: [volume] }).map(({ detail }) => detail);
  assert.deepEqual(reasons({ name: 'a' }), []);
  assert.deepEqual(reasons({ name: 'a', hostPath: null }), []);
  assert.deepEqual(reasons({ name: 'a', future: {} }), ['volume "a" uses restricted volume type "unknown"']);
});

test('annotations are quoted as in Go', () => {
  const annotations = { 'container.apparmor.security.beta.kubernetes.io/a': 'é"\\\n\u0007\u0001\u00a0\u{e0001}' };
  const [violation] = evaluatePodSecurity('baseline', 'latest', { annotations }, {});
  assert.match(violation!.detail, /="é\\"\\\\\\n\\a\\x01\\u00a0\\U000e0001"/);
});

test('a future version is checked as latest', () => {
  const spec = { containers: [{ name: 'a', livenessProbe: { httpGet: { host: 'h' } } }] };
  const atFuture = evaluatePodSecurity('baseline', 'v1.4000', {}, spec);
  assert.deepEqual(atFuture, evaluatePodSecurity('baseline', 'latest', {}, spec));
  assert.equal(atFuture.length, 1);
  assert.deepEqual(evaluatePodSecurity('baseline', 'v1.33', {}, spec), []);
});

test('an empty detail has no brackets', () => {
  const spec = { securityContext: { sysctls: [{ name: '' }] } };
  assert.equal(describeViolations(evaluatePodSecurity('baseline', 'latest', {}, spec)), 'forbidden sysctls');
});

for (const [name, metadata, spec, path, problem] of [
  ['no specification', {}, undefined, 'spec', 'expected an object, got nothing'],
  ['a specification that is text', {}, 'x', 'spec', 'expected an object, got text'],
  ['metadata that is a list', [], {}, 'metadata', 'expected an object, got a list'],
  ['a null container', {}, { containers: [null] }, 'spec.containers[0]', 'expected an object, got nothing'],
  ['containers in an object', {}, { containers: { a: {} } }, 'spec.containers', 'expected a list, got an object'],
  [
    'a security context that is no object',
    {},
    { initContainers: [{}, { securityContext: 'none' }] },
    'spec.initContainers[1].securityContext',
    'expected an object, got text',
  ],
  ['hostNetwork as text', {}, { hostNetwork: 'false' }, 'spec.hostNetwork', 'expected true or false, got text'],
  ['an annotation that is a number', { annotations: { a: 1 } }, {}, 'metadata.annotations[a]', 'expected text, got 1'],
  [
    'half a user',
    {},
    { securityContext: { runAsUser: 0.5 } },
    'spec.securityContext.runAsUser',
    'expected a whole number, got 0.5',
  ],
] as const) {
  test(`${name} is malformed at every level above privileged`, () => {
    const expected = {
      check: MALFORMED,
      since: 'v1.0',
      reason: 'malformed pod',
      detail: `${path}: ${problem}`,
      containers: [],
      fields: [path],
    };
    assert.deepEqual(restricted(spec, metadata), [expected]);
    assert.deepEqual(evaluatePodSecurity('baseline', 'v1.0', metadata, spec), [expected]);
  });
}

/** All paths below a value. */
function placesIn(value: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, member]) => [[...at, key], ...placesIn(member, [...at, key])])
    : [];
}

/** Fields of the hardened pod that the standards do not read. */
const UNREAD = /^metadata\.name|containerPort|\.port$|\.value$|configMap\.name$|^metadata$|^spec$/;

test('every field that the standards read is refused with a wrong type', () => {
  const wrongs: readonly unknown[] = ['text', true, 1.5, [], [1], {}, { a: 1 }];
  let changed = 0;
  for (const place of placesIn(hardenedPod()).filter((keys) => !UNREAD.test(keys.join('.')))) {
    const original = valueAt(hardenedPod(), place);
    for (const wrong of wrongs.filter((value) => kindOf(value) !== kindOf(original))) {
      const pod = hardenedPod();
      const holder = valueAt(pod, place.slice(0, -1)) as Json;
      holder[place.at(-1)!] = wrong;
      const checks = restricted(pod.spec, pod.metadata).map(({ check }) => check);
      assert.deepEqual(checks, [MALFORMED], `${place.join('.')} = ${JSON.stringify(wrong)}`);
      changed++;
    }
  }
  assert.ok(changed > 500, `expected to change hundreds of values, changed ${changed}`);
});

function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce((inner, key) => (inner as Json)[key], value);
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value;
}

test('hostile pods never throw, and never pass if their harmless parts would not', () => {
  const key = fc.constantFrom(
    'containers',
    'initContainers',
    'securityContext',
    'volumes',
    'annotations',
    'name',
    'ports',
    'capabilities',
    'add',
    'drop',
    'seccompProfile',
    'type',
    'hostPath',
    '__proto__',
    'constructor',
    'toString',
  );
  const { value } = fc.letrec<{ value: unknown; leaf: unknown }>((tie) => ({
    leaf: fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.double(), fc.string(), fc.constant('ALL')),
    value: fc.oneof(
      { maxDepth: 6 },
      tie('leaf'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => {
        // As from JSON.parse: `__proto__` is a key like any other.
        const members = entries.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member) ?? 'null'}`);
        return JSON.parse(`{${members.join(',')}}`) as unknown;
      }),
    ),
  }));
  const privileged = { name: 'bad', securityContext: { privileged: true } };
  fc.assert(
    fc.property(value, value, fc.array(value, { maxLength: 2 }), (metadata, spec, others) => {
      restricted(spec, metadata);
      assert.notEqual(restricted({ containers: [...others, privileged] }, metadata).length, 0);
      if (typeof spec === 'object' && spec !== null && !Array.isArray(spec)) {
        assert.notEqual(restricted({ ...spec, hostPID: true }, metadata).length, 0);
      }
    }),
    { numRuns: 1_000 },
  );
});

test('keys of prototypes neither hide nor forge anything', () => {
  const spec = JSON.parse('{"__proto__": {"hostPID": true}, "constructor": 1, "containers": []}') as unknown;
  assert.deepEqual(restricted(spec), []);
  const hiding = JSON.parse('{"__proto__": {"hostPID": false}, "hostPID": true}') as unknown;
  assert.equal(restricted(hiding)[0]?.check, 'hostNamespaces');
});

test('lists are checked completely up to a limit, and refused beyond', () => {
  const count = MAX_ENTRIES;
  const containers = Array.from({ length: count }, (_, index) => ({
    name: `c${index}`,
    ports: [{ hostPort: index + 1 }],
    securityContext: { capabilities: { add: ['SYS_ADMIN'] } },
    livenessProbe: { httpGet: { host: `h${index}` } },
  }));
  const volumes = Array.from({ length: count }, (_, index) => ({ name: `v${index}`, nfs: {} }));
  const violations = restricted({ containers, volumes });
  assert.equal(violations.find(({ check }) => check === 'capabilities_restricted')?.containers.length, count);
  assert.equal(violations.find(({ check }) => check === 'restrictedVolumes')?.fields.length, count);
  const [first] = restricted({ containers: [...containers, { name: 'more' }] });
  assert.equal(first?.check, MALFORMED);
  assert.match(first?.detail ?? '', /expected at most 5000 elements, got 5001/);
});
