import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseJson } from '../../values/index.ts';
import { MAX_ENTRIES } from '../values/json-shape.ts';
import type { JsonObject } from '../values/json-text.ts';
import { applyPodProfile } from './admission.ts';
import type { PodProfileVerdict } from './admission.ts';
import { parsePodProfileSettings } from './settings.ts';
import type { PodProfileSettings } from './settings.ts';
import { MAX_MESSAGE } from './violations.ts';

type Json = Readonly<Record<string, unknown>>;

function settingsOf(json: Json): PodProfileSettings {
  const { settings, problems } = parsePodProfileSettings(json);
  assert.ok(settings !== undefined, JSON.stringify(problems));
  return settings;
}

/** A tenant's profile: one user, nothing of the node. */
const TENANT_JSON = {
  runAsUser: 1000,
  runAsGroup: 1000,
  fsGroup: 1000,
  supplementalGroups: { rule: 'MustRunAs', ranges: [{ min: 1, max: 65_535 }] },
  seLinux: 'RunAsAny',
  allowPrivilegeEscalation: false,
  requiredDropCapabilities: ['ALL'],
  readOnlyRootFilesystem: true,
  allowedSeccompProfiles: ['RuntimeDefault'],
  defaultSeccompProfile: 'RuntimeDefault',
  volumes: ['configMap', 'hostPath'],
  allowedHostPaths: [{ pathPrefix: '/data' }, { pathPrefix: '/etc/ldap', readOnly: true }],
};
const TENANT = settingsOf(TENANT_JSON);
const NON_ROOT = settingsOf({ ...TENANT_JSON, runAsUser: 'MustRunAsNonRoot' });

function requestOf(spec: unknown, more: Json = {}): Json {
  return {
    resource: { group: '', version: 'v1', resource: 'pods' },
    operation: 'CREATE',
    object: { metadata: { name: 'p' }, spec },
    ...more,
  };
}

function updateOf(spec: unknown, oldSpec: unknown, subResource?: string): Json {
  return requestOf(spec, { operation: 'UPDATE', oldObject: { spec: oldSpec }, subResource });
}

const SECURE_CONTAINER = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
};

test('all defaults come in one object, for containers of every kind', () => {
  const spec = { containers: [{ name: 'a' }], initContainers: [{ name: 'b' }], ephemeralContainers: [{ name: 'c' }] };
  const before = structuredClone(spec);
  const { mutatedObject, ...verdict } = applyPodProfile(requestOf(spec), TENANT);
  assert.deepEqual(verdict, { accepted: true });
  assert.deepEqual(mutatedObject, {
    metadata: { name: 'p' },
    spec: {
      containers: [{ name: 'a', securityContext: SECURE_CONTAINER }],
      initContainers: [{ name: 'b', securityContext: SECURE_CONTAINER }],
      ephemeralContainers: [{ name: 'c', securityContext: SECURE_CONTAINER }],
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        supplementalGroups: [1],
        seccompProfile: { type: 'RuntimeDefault' },
      },
    },
  });
  assert.deepEqual(spec, before);
});

test('a denial lists every violation in order, and mutates nothing', () => {
  const verdict = applyPodProfile(
    requestOf({
      hostPID: true,
      securityContext: { fsGroup: 0 },
      volumes: [{ name: 'v', nfs: {} }],
      initContainers: [{ securityContext: { privileged: true } }],
      containers: [
        { ports: [{ hostPort: 80 }] },
        { securityContext: { runAsUser: 0, allowPrivilegeEscalation: true } },
      ],
    }),
    TENANT,
  );
  assert.deepEqual(verdict, {
    accepted: false,
    code: 403,
    message:
      'violates the pod profile: spec.hostPID: expected false, got true; ' +
      'spec.securityContext.fsGroup: expected 1000, got 0; ' +
      'spec.volumes[0]: expected a volume of an allowed type: configMap, hostPath; got "nfs"; ' +
      'spec.initContainers[0].securityContext.privileged: expected false, got true; ' +
      'spec.initContainers[0].securityContext.allowPrivilegeEscalation: expected false, got nothing; ' +
      'spec.containers[0].ports[0].hostPort: expected no port of the node, got 80; ' +
      'spec.containers[1].securityContext.runAsUser: expected 1000, got 0; ' +
      'spec.containers[1].securityContext.allowPrivilegeEscalation: expected false, got true',
  });
});

test('a long denial ends with the number of the other violations', () => {
  const containers = Array.from({ length: MAX_ENTRIES }, () => ({ securityContext: { runAsUser: 0 } }));
  const { message = '' } = applyPodProfile(requestOf({ containers }), TENANT);
  assert.ok(message.length < MAX_MESSAGE + 20);
  const shown = message.split('; ').length - 1;
  assert.match(message, new RegExp(`; and ${MAX_ENTRIES - shown} more$`));
  const value = 'x'.repeat(1_000_000);
  const annotations = { [`container.seccomp.security.alpha.kubernetes.io/${value}`]: value };
  for (const object of [
    { spec: { containers: [], volumes: [{ [value]: {} }] } },
    { metadata: { annotations }, spec: { containers: [{ name: value }] } },
    { metadata: { annotations: { [value]: 7 } }, spec: { containers: [] } },
  ]) {
    const long = applyPodProfile(requestOf({}, { object }), TENANT);
    assert.equal(long.accepted, false);
    assert.ok((long.message ?? '').length < 700);
  }
});

test('an update of a pod is refused for new violations only, and mutates nothing', () => {
  const old = { containers: [{ name: 'a', image: 'x', securityContext: { privileged: true } }] };
  const changed = { containers: [{ ...old.containers[0], image: 'y' }] };
  assert.deepEqual(applyPodProfile(updateOf(changed, old), TENANT), { accepted: true });
  const worse = { ...changed, hostNetwork: true };
  assert.equal(
    applyPodProfile(updateOf(worse, old), TENANT).message,
    'violates the pod profile: spec.hostNetwork: expected false, got true',
  );
  for (const oldSpec of [undefined, 'none', { containers: 7 }]) {
    const { accepted, message } = applyPodProfile(updateOf(changed, oldSpec), TENANT);
    assert.equal(accepted, false);
    assert.match(message ?? '', /spec\.containers\[0\]\.securityContext\.privileged/);
  }
});

test('additional ephemeral containers get the defaults that the pod cannot get any more', () => {
  const old = { containers: [{ name: 'a' }], ephemeralContainers: [{ name: 'b' }] };
  const spec = { ...old, ephemeralContainers: [{ name: 'b' }, { name: 'c' }] };
  const { accepted, mutatedObject } = applyPodProfile(updateOf(spec, old, 'ephemeralcontainers'), TENANT);
  assert.equal(accepted, true);
  assert.deepEqual(mutatedObject?.['spec'], {
    ...old,
    ephemeralContainers: [
      { name: 'b' },
      {
        name: 'c',
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 1000,
          seccompProfile: { type: 'RuntimeDefault' },
          ...SECURE_CONTAINER,
        },
      },
    ],
  });
  const privileged = { ...old, ephemeralContainers: [{ name: 'b' }, { name: 'c', securityContext: { runAsUser: 0 } }] };
  assert.equal(
    applyPodProfile(updateOf(privileged, old, 'ephemeralcontainers'), TENANT).message,
    'violates the pod profile: spec.ephemeralContainers[1].securityContext.runAsUser: expected 1000, got 0',
  );
});

test('an additional ephemeral container inherits from its pod, and from the annotation for its name', () => {
  const settings = settingsOf({
    ...TENANT_JSON,
    allowedAppArmorProfiles: ['localhost/a'],
    defaultAppArmorProfile: 'localhost/a',
  });
  const securityContext = {
    runAsUser: 1000,
    runAsGroup: 1000,
    fsGroup: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const annotations = { 'container.apparmor.security.beta.kubernetes.io/c': 'localhost/a' };
  const spec = { securityContext, containers: [], ephemeralContainers: [{ name: 'c' }] };
  const request = {
    ...updateOf(spec, { securityContext, containers: [] }, 'ephemeralcontainers'),
    object: { metadata: { annotations }, spec },
  };
  const { accepted, mutatedObject } = applyPodProfile(request, settings);
  assert.equal(accepted, true);
  const { ephemeralContainers } = (mutatedObject?.['spec'] ?? {}) as { ephemeralContainers?: unknown };
  assert.deepEqual(ephemeralContainers, [{ name: 'c', securityContext: SECURE_CONTAINER }]);
});

test('a Windows pod gets and needs no fields of Linux', () => {
  const windows = { os: { name: 'windows' }, containers: [{ name: 'a' }] };
  assert.deepEqual(applyPodProfile(requestOf(windows), TENANT), { accepted: true });
  assert.deepEqual(applyPodProfile(requestOf(windows), NON_ROOT).mutatedObject?.['spec'], {
    ...windows,
    securityContext: { runAsNonRoot: true },
  });
  const hostProcess = { ...windows, hostNetwork: true, securityContext: { windowsOptions: { hostProcess: true } } };
  assert.equal(
    applyPodProfile(requestOf(hostProcess), TENANT).message,
    'violates the pod profile: spec.hostNetwork: expected false, got true; ' +
      'spec.securityContext.windowsOptions.hostProcess: expected false, got true',
  );
});

test('host paths of Windows ignore case, have two separators, and no names like ".."', () => {
  const settings = settingsOf({ ...TENANT_JSON, allowedHostPaths: [{ pathPrefix: 'C:\\Data' }, { pathPrefix: 'd:' }] });
  const verdict = (path: string): boolean =>
    applyPodProfile(requestOf({ os: { name: 'windows' }, containers: [], volumes: [{ hostPath: { path } }] }), settings)
      .accepted;
  for (const path of ['c:\\data', 'C:/DATA/x', 'c:\\\\data\\.\\x\\', 'D:\\x']) {
    assert.equal(verdict(path), true, path);
  }
  for (const path of ['c:\\datax', 'data', 'c:data', '\\data', 'c:\\data\\..\\x', 'c:/data/.. /x', 'c:\\data\\...']) {
    assert.equal(verdict(path), false, path);
  }
});

test('other resources, operations and subresources are accepted', () => {
  const deployments = { resource: { group: 'apps', version: 'v1', resource: 'deployments' } };
  const privileged = { containers: [{ securityContext: { privileged: true } }] };
  for (const more of [
    deployments,
    { operation: 'DELETE' },
    { operation: 'CONNECT' },
    { subResource: 'status' },
    { subResource: 'exec' },
  ]) {
    assert.deepEqual(applyPodProfile(requestOf(privileged, more), TENANT), { accepted: true });
  }
  for (const more of [{ subResource: 'resize' }, { subResource: 'invented' }, { subResource: null }]) {
    assert.equal(applyPodProfile(requestOf(privileged, more), TENANT).accepted, false);
  }
});

for (const [what, request, expected] of [
  ['no object', 'pod', 'expected an admission request, got other JSON'],
  ['no resource', {}, 'expected an admission request with a resource or a kind, got neither'],
  [
    'no operation',
    requestOf({}, { operation: 'PATCH' }),
    'expected the operation CREATE, UPDATE, DELETE or CONNECT, got another',
  ],
] as const) {
  test(`a request with ${what} is refused`, () => {
    assert.deepEqual(applyPodProfile(request, TENANT), { accepted: false, message: expected, code: 400 });
  });
}

for (const [spec, expected] of [
  [null, 'spec: expected an object, got nothing'],
  ['x', 'spec: expected an object, got text'],
  [{ containers: {} }, 'spec.containers: expected a list, got an object'],
  [{ containers: [null] }, 'spec.containers[0]: expected an object, got nothing'],
  [{ containers: [[]] }, 'spec.containers[0]: expected an object, got a list'],
  [
    { containers: [{ securityContext: { runAsUser: '1000' } }] },
    'spec.containers[0].securityContext.runAsUser: expected a whole number, got text',
  ],
  [{ securityContext: { runAsUser: 1000.5 } }, 'spec.securityContext.runAsUser: expected a whole number, got 1000.5'],
  [
    { securityContext: { supplementalGroups: [null] } },
    'spec.securityContext.supplementalGroups[0]: expected a whole number, got nothing',
  ],
  [{ hostNetwork: 'false' }, 'spec.hostNetwork: expected true or false, got text'],
  [
    { containers: Array.from({ length: 10_000 }, () => ({})) },
    `spec.containers: expected at most ${MAX_ENTRIES} elements, got 10000`,
  ],
] as const) {
  test(`a malformed pod is refused: ${expected}`, () => {
    assert.equal(applyPodProfile(requestOf(spec), TENANT).message, `violates the pod profile: ${expected}`);
  });
}

test('an object without a pod is refused', () => {
  for (const object of [undefined, null, 'x', [], {}]) {
    const { accepted, code } = applyPodProfile(requestOf({}, { object }), TENANT);
    assert.deepEqual({ accepted, code }, { accepted: false, code: 403 });
  }
});

test('ids beyond 64 bits are outside of every range', () => {
  const spec = parseJson('{"containers":[],"securityContext":{"runAsUser":18446744073709552616,"runAsGroup":1e300}}');
  assert.equal(
    applyPodProfile(requestOf(spec), TENANT).message,
    'violates the pod profile: spec.securityContext.runAsUser: expected 1000, got 18446744073709552000; ' +
      'spec.securityContext.runAsGroup: expected 1000, got 1e+300',
  );
});

test('keys of prototypes are keys like others', () => {
  const text = `{"__proto__": {"a": 1}, "spec": {"containers": [{"name": "__proto__", "__proto__": {"b": 1},
    "securityContext": {"__proto__": {"privileged": true}, "capabilities": {"__proto__": {"drop": ["ALL"]}}}}]}}`;
  const { accepted, mutatedObject } = applyPodProfile(requestOf({}, { object: parseJson(text) }), TENANT);
  assert.equal(accepted, true);
  const spec = mutatedObject?.['spec'] as Json;
  const [container] = spec['containers'] as readonly JsonObject[];
  assert.ok(Object.hasOwn(mutatedObject ?? {}, '__proto__'));
  assert.ok(Object.hasOwn(container ?? {}, '__proto__'));
  const security = (container?.['securityContext'] ?? {}) as Json;
  assert.deepEqual((security['capabilities'] as Json)['drop'], ['ALL']);
  assert.equal(applyPodProfile(requestOf({ containers: [], volumes: [{ constructor: {} }] }), TENANT).accepted, false);
});

test('of volumes and containers with the same name, the strictest rule holds for each', () => {
  const spec = {
    volumes: [
      { name: 'v', configMap: {} },
      { name: 'v', hostPath: { path: '/etc/ldap' } },
    ],
    containers: [
      { name: 'a', volumeMounts: [{ name: 'v' }] },
      { name: 'a', securityContext: { runAsUser: 0 } },
    ],
  };
  assert.equal(
    applyPodProfile(requestOf(spec), TENANT).message,
    'violates the pod profile: spec.containers[0].volumeMounts[0].readOnly: expected true, got nothing; ' +
      'spec.containers[1].securityContext.runAsUser: expected 1000, got 0',
  );
});

// Most values are harmless, so that some pods are accepted.
const id = fc.constantFrom(1, 1000, 1000, 1000, null, null, 0, 70_000);
const flag = fc.constantFrom(false, false, null, null, null, true);
const optional: { requiredKeys: [] } = { requiredKeys: [] };
const shared = {
  runAsUser: id,
  runAsGroup: id,
  runAsNonRoot: flag,
  seccompProfile: fc.constantFrom({ type: 'RuntimeDefault' }, null, null, { type: 'Unconfined' }),
  appArmorProfile: fc.constantFrom({ type: 'RuntimeDefault' }, { type: 'Unconfined' }),
  seLinuxOptions: fc.constantFrom({ level: 's0' }, { level: 's1' }, null),
  windowsOptions: fc.record({ hostProcess: flag }, optional),
};
const names = fc.subarray(['ALL', 'KILL', 'CHOWN', 'SYS_ADMIN']);
const container = fc.record(
  {
    name: fc.constantFrom('a', 'b', '__proto__'),
    ports: fc.array(fc.record({ hostPort: fc.constantFrom(0, 80, 8000) }), { maxLength: 2 }),
    volumeMounts: fc.array(fc.record({ name: fc.constantFrom('v', 'w'), readOnly: flag }), { maxLength: 2 }),
    securityContext: fc.record(
      {
        ...shared,
        privileged: flag,
        allowPrivilegeEscalation: flag,
        readOnlyRootFilesystem: flag,
        procMount: fc.constantFrom('Default', 'Unmasked', null),
        capabilities: fc.option(fc.record({ add: names, drop: names }, optional)),
      },
      optional,
    ),
  },
  optional,
);
const containers = fc.array(container, { maxLength: 2 });
const podSpec = fc.record(
  {
    os: fc.constantFrom({ name: 'linux' }, { name: 'windows' }),
    hostNetwork: flag,
    runtimeClassName: fc.constantFrom('kata', 'runc', null),
    securityContext: fc.record(
      { ...shared, fsGroup: id, supplementalGroups: fc.array(fc.constantFrom(0, 1, 7)) },
      optional,
    ),
    volumes: fc.array(
      fc.record(
        {
          name: fc.constantFrom('v', 'w'),
          hostPath: fc.record({ path: fc.constantFrom('/data', '/etc/ldap', '/x') }),
          emptyDir: fc.constant({}),
        },
        optional,
      ),
      { maxLength: 2 },
    ),
    initContainers: containers,
    containers,
    ephemeralContainers: containers,
  },
  { requiredKeys: ['containers'] },
);
const rule = fc.constantFrom('RunAsAny', 1000, { rule: 'MustRunAs', ranges: [{ min: 1, max: 5 }] });
const profileSettings = fc
  .record({
    runAsUser: fc.oneof(rule, fc.constant('MustRunAsNonRoot')),
    runAsGroup: rule,
    fsGroup: rule,
    supplementalGroups: rule,
    seLinux: fc.constantFrom('RunAsAny', { rule: 'MustRunAs', seLinuxOptions: { level: 's0' } }),
    privileged: fc.boolean(),
    allowPrivilegeEscalation: fc.boolean(),
    readOnlyRootFilesystem: fc.boolean(),
    allowedCapabilities: fc.subarray(['CHOWN']),
    defaultAddCapabilities: fc.subarray(['CHOWN']),
    requiredDropCapabilities: fc.subarray(['ALL', 'KILL']),
    defaultSeccompProfile: fc.constantFrom('RuntimeDefault', null),
    allowedAppArmorProfiles: fc.constantFrom(['RuntimeDefault'], null),
    defaultAppArmorProfile: fc.constantFrom('RuntimeDefault', null),
    hostNetwork: fc.boolean(),
    hostPorts: fc.constantFrom([], [{ min: 80, max: 80 }]),
    volumes: fc.constantFrom(['*'], ['hostPath']),
    allowedHostPaths: fc.constantFrom(null, TENANT_JSON.allowedHostPaths),
    runtimeClass: fc.constantFrom(null, { allowedRuntimeClassNames: ['kata'], defaultRuntimeClassName: 'kata' }),
  })
  .map(settingsOf);

/** The verdict on a pod with the defaults of the verdict before. */
function again(verdict: PodProfileVerdict, request: Json, settings: PodProfileSettings): PodProfileVerdict {
  return applyPodProfile({ ...request, object: verdict.mutatedObject ?? request['object'] }, settings);
}

test('a pod with the defaults gets none any more, and has the same verdict', () => {
  let accepted = 0;
  fc.assert(
    fc.property(podSpec, podSpec, profileSettings, (spec, oldSpec, settings) => {
      const requests = [requestOf(spec), updateOf(spec, oldSpec), updateOf(spec, oldSpec, 'ephemeralcontainers')];
      for (const request of requests) {
        const verdict = applyPodProfile(request, settings);
        accepted += verdict.accepted ? 1 : 0;
        const { mutatedObject: _none, ...rest } = verdict;
        assert.deepEqual(again(verdict, request, settings), rest);
        assert.equal(verdict.accepted || verdict.mutatedObject === undefined, true);
      }
    }),
    { numRuns: 500 },
  );
  assert.ok(accepted > 20, `expected accepted pods among the generated ones, got ${accepted}`);
});

test('an accepted new pod passes as an update of a pod without violations', () => {
  const compliant = {
    containers: [],
    securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, supplementalGroups: [1] },
  };
  fc.assert(
    fc.property(podSpec, (spec) => {
      const verdict = applyPodProfile(requestOf(spec), TENANT);
      const result = (verdict.mutatedObject ?? { spec })['spec'];
      const update = applyPodProfile(updateOf(result, compliant), TENANT);
      assert.equal(verdict.accepted ? update.accepted : true, true);
    }),
  );
});

test('any JSON has a verdict', () => {
  const key = fc.constantFrom(
    'metadata',
    'spec',
    'containers',
    'volumes',
    'securityContext',
    'annotations',
    '__proto__',
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 6 }, fc.jsonValue(), fc.dictionary(key, tie('value')), fc.array(tie('value'))),
  }));
  fc.assert(
    fc.property(value, value, (object, oldObject) => {
      for (const more of [{ object }, { object, oldObject, operation: 'UPDATE', subResource: 'ephemeralcontainers' }]) {
        const { accepted, message } = applyPodProfile(requestOf({}, more), TENANT);
        assert.equal(accepted, message === undefined);
      }
    }),
  );
});
