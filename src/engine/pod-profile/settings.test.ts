import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { MAX_LIST } from './read-list.ts';
import { parsePodProfileSettings, POD_PROFILE_KEYS } from './settings.ts';
import type { PodProfileSettings } from './settings.ts';

const RULES = { runAsUser: 'RunAsAny', fsGroup: 'RunAsAny', supplementalGroups: 'RunAsAny', seLinux: 'RunAsAny' };

function settingsOf(json: unknown): PodProfileSettings {
  const { settings, problems } = parsePodProfileSettings(json);
  assert.deepEqual(problems, undefined);
  return settings;
}

function problemsOf(json: unknown): readonly string[] {
  const { settings, problems } = parsePodProfileSettings(json);
  assert.equal(settings, undefined);
  return problems.map(({ field, message }) => `${field}: ${message}`);
}

test('without a key, the field of a PodSecurityPolicy has its default', () => {
  assert.deepEqual(settingsOf(RULES), {
    runAsUser: { rule: 'RunAsAny', ranges: [] },
    runAsGroup: { rule: 'RunAsAny', ranges: [] },
    fsGroup: { rule: 'RunAsAny', ranges: [] },
    supplementalGroups: { rule: 'RunAsAny', ranges: [] },
    seLinux: undefined,
    privileged: false,
    allowPrivilegeEscalation: true,
    defaultAllowPrivilegeEscalation: undefined,
    capabilities: { allowed: new Set(), added: [], dropped: [] },
    readOnlyRootFilesystem: false,
    seccomp: { allowed: new Set(['RuntimeDefault']), isRequired: false, defaultProfile: undefined },
    appArmor: { allowed: undefined, isRequired: false, defaultProfile: undefined },
    procMountTypes: new Set(['Default']),
    hostNetwork: false,
    hostPID: false,
    hostIPC: false,
    hostPorts: [],
    sysctls: { allowedUnsafe: [], forbidden: [] },
    volumes: { types: new Set(), hostPaths: undefined, flexDrivers: undefined, csiDrivers: undefined },
    runtimeClasses: { allowed: undefined, defaultClass: undefined },
  });
});

test('an id is short for MustRunAs with this id, and null is an absent key', () => {
  const { runAsUser, runAsGroup } = settingsOf({ ...RULES, runAsUser: 52503, runAsGroup: null });
  const range = { min: 52503, max: 52503 };
  assert.deepEqual(runAsUser, { rule: 'MustRunAs', ranges: [range] });
  assert.deepEqual(settingsOf({ ...RULES, runAsUser: { rule: 'MustRunAs', ranges: [range] } }).runAsUser, runAsUser);
  assert.deepEqual(runAsGroup, { rule: 'RunAsAny', ranges: [] });
});

test('the spec of a PodSecurityPolicy is accepted unchanged', () => {
  const { volumes, sysctls, runtimeClasses, capabilities, seLinux } = settingsOf({
    privileged: false,
    allowPrivilegeEscalation: false,
    defaultAllowPrivilegeEscalation: false,
    requiredDropCapabilities: ['ALL'],
    allowedCapabilities: ['NET_BIND_SERVICE'],
    defaultAddCapabilities: ['CHOWN'],
    volumes: ['configMap', 'hostPath', 'flexVolume', 'csi'],
    allowedHostPaths: [{ pathPrefix: '/data/project/' }, { pathPrefix: '/etc/ldap.conf', readOnly: true }],
    allowedFlexVolumes: [{ driver: 'example/lvm' }],
    allowedCSIDrivers: [{ name: 'csi.example.com' }],
    hostNetwork: false,
    hostPorts: [{ min: 8000, max: 8080 }],
    hostIPC: false,
    hostPID: false,
    runAsUser: { rule: 'MustRunAs', ranges: [{ min: 1000, max: 1999 }] },
    runAsGroup: { rule: 'MayRunAs', ranges: [{ min: 1000, max: 1999 }] },
    seLinux: { rule: 'MustRunAs', seLinuxOptions: { level: 's0:c1,c2' } },
    supplementalGroups: { rule: 'MustRunAs', ranges: [{ min: 1, max: 65535 }] },
    fsGroup: { rule: 'RunAsAny' },
    readOnlyRootFilesystem: true,
    allowedProcMountTypes: ['Default'],
    allowedUnsafeSysctls: ['net.core.*'],
    forbiddenSysctls: ['kernel/shm_rmid_forced'],
    runtimeClass: { allowedRuntimeClassNames: ['kata'], defaultRuntimeClassName: 'kata' },
  });
  assert.deepEqual(volumes.hostPaths, [
    { names: ['data', 'project'], windowsNames: ['data', 'project'], readOnly: false },
    { names: ['etc', 'ldap.conf'], windowsNames: ['etc', 'ldap.conf'], readOnly: true },
  ]);
  assert.deepEqual(volumes.csiDrivers, new Set(['csi.example.com']));
  assert.deepEqual(volumes.flexDrivers, new Set(['example/lvm']));
  assert.deepEqual(sysctls, { allowedUnsafe: ['net.core.*'], forbidden: ['kernel.shm_rmid_forced'] });
  assert.deepEqual(runtimeClasses, { allowed: new Set(['kata']), defaultClass: 'kata' });
  assert.deepEqual(capabilities.allowed, new Set(['NET_BIND_SERVICE', 'CHOWN']));
  assert.deepEqual(seLinux, { user: '', role: '', type: '', level: 's0:c1,c2' });
});

test('profiles have the spellings of annotations and of fields', () => {
  const { seccomp, appArmor } = settingsOf({
    ...RULES,
    allowedSeccompProfiles: ['docker/default', 'runtime/default', 'localhost/audit.json', 'unconfined'],
    defaultSeccompProfile: 'RuntimeDefault',
    allowedAppArmorProfiles: ['*'],
    defaultAppArmorProfile: 'localhost/web',
  });
  const allowed = new Set(['RuntimeDefault', 'localhost/audit.json', 'Unconfined']);
  assert.deepEqual(seccomp, { allowed, isRequired: true, defaultProfile: 'RuntimeDefault' });
  assert.deepEqual(appArmor, { allowed: undefined, isRequired: false, defaultProfile: 'localhost/web' });
});

const MAX_ID = 2_147_483_647;
const ID_CHOICES = `expected an id from 0 to ${MAX_ID}, or a rule: MustRunAs, MustRunAsNonRoot, RunAsAny`;
const PROFILES = 'expected RuntimeDefault, Unconfined, "localhost/PROFILE"';

for (const [json, ...expected] of [
  [[], ': expected a mapping, got a list'],
  [
    {},
    `runAsUser: ${ID_CHOICES}; got nothing`,
    `fsGroup: ${ID_CHOICES.replace('MustRunAsNonRoot', 'MayRunAs')}; got nothing`,
    `supplementalGroups: ${ID_CHOICES.replace('MustRunAsNonRoot', 'MayRunAs')}; got nothing`,
    'seLinux: expected RunAsAny, or {rule: MustRunAs, seLinuxOptions: {…}}, got nothing',
  ],
  [{ ...RULES, priviledged: true }, 'priviledged: unknown key "priviledged": did you mean "privileged"?'],
  [
    { ...RULES, JSON: 1, ['__proto__x']: 1 },
    `JSON: unknown key "JSON": expected one of ${POD_PROFILE_KEYS.join(', ')}`,
    `__proto__x: unknown key "__proto__x": expected one of ${POD_PROFILE_KEYS.join(', ')}`,
  ],
  [
    { ...RULES, runAsUser: 'MustRunAs' },
    'runAsUser: expected ranges: write {rule: MustRunAs, ranges: [{min: 1000, max: 1000}]}',
  ],
  [{ ...RULES, runAsUser: '1000' }, `runAsUser: ${ID_CHOICES}; got "1000"`],
  [{ ...RULES, runAsUser: -1 }, `runAsUser: ${ID_CHOICES}; got -1`],
  [{ ...RULES, runAsUser: 1e300 }, `runAsUser: ${ID_CHOICES}; got 1e+300`],
  [
    { ...RULES, runAsUser: { rule: 'MustRunAs' } },
    'runAsUser.ranges: expected at least one range for MustRunAs, got none',
  ],
  [
    { ...RULES, runAsUser: { rule: 'MayRunAs', ranges: [{ min: 1, max: 2 }] } },
    'runAsUser.rule: expected MustRunAs, MustRunAsNonRoot, RunAsAny, got "MayRunAs"',
  ],
  [
    { ...RULES, runAsUser: { rule: 'RunAsAny', ranges: [{ min: 1, max: 1 }] } },
    'runAsUser.ranges: expected no ranges for RunAsAny, which does not use them',
  ],
  [
    {
      ...RULES,
      fsGroup: {
        rule: 'MustRunAs',
        ranges: [
          { min: 2, max: 1 },
          { min: '1', maks: 1 },
        ],
      },
    },
    'fsGroup.ranges[1].maks: unknown key "maks": did you mean "max"?',
    'fsGroup.ranges[0]: expected min to be at most max, got 2 and 1',
    `fsGroup.ranges[1].min: expected a whole number from 0 to ${MAX_ID}, got "1"`,
    `fsGroup.ranges[1].max: expected a whole number from 0 to ${MAX_ID}, got nothing`,
  ],
  [{ ...RULES, seLinux: { rule: 'MustRunAs' } }, 'seLinux.seLinuxOptions: expected options for MustRunAs, got nothing'],
  [
    { ...RULES, seLinux: { rule: 'RunAsAny', seLinuxOptions: {} } },
    'seLinux.seLinuxOptions: expected no options for RunAsAny, which does not use them',
  ],
  [
    { ...RULES, seLinux: { rule: 'MustRunAs', seLinuxOptions: { levl: 's0' } } },
    'seLinux.seLinuxOptions.levl: unknown key "levl": did you mean "level"?',
  ],
  [{ ...RULES, privileged: 'yes' }, 'privileged: expected true or false, got "yes"'],
  [
    { ...RULES, allowPrivilegeEscalation: false, defaultAllowPrivilegeEscalation: true },
    'defaultAllowPrivilegeEscalation: expected false, as allowPrivilegeEscalation is, got true',
  ],
  [
    { ...RULES, allowedCapabilities: ['CAP_KILL', 'kill', '*'], defaultAddCapabilities: ['*'] },
    'allowedCapabilities[0]: expected a capability such as NET_BIND_SERVICE, without CAP_, got "CAP_KILL"',
    'allowedCapabilities[1]: expected a capability such as NET_BIND_SERVICE, without CAP_, got "kill"',
    'defaultAddCapabilities[0]: expected a capability such as NET_BIND_SERVICE, without CAP_, got "*"',
  ],
  [
    { ...RULES, requiredDropCapabilities: ['KILL'], defaultAddCapabilities: ['KILL'], allowedCapabilities: ['KILL'] },
    'allowedCapabilities[0]: expected no capability of requiredDropCapabilities, got KILL',
    'defaultAddCapabilities[0]: expected no capability of requiredDropCapabilities, got KILL',
  ],
  [
    { ...RULES, allowedSeccompProfiles: ['Runtime', 5, 'localhost/'], defaultSeccompProfile: '*' },
    `allowedSeccompProfiles[0]: ${PROFILES} or "*", got "Runtime"`,
    'allowedSeccompProfiles[1]: expected text, got 5',
    `allowedSeccompProfiles[2]: ${PROFILES} or "*", got "localhost/"`,
    `defaultSeccompProfile: ${PROFILES}, got "*"`,
  ],
  [
    { ...RULES, defaultSeccompProfile: 'unconfined' },
    'defaultSeccompProfile: expected one of the allowed profiles, got "unconfined"',
  ],
  [
    { ...RULES, allowedProcMountTypes: ['DefaultProcMount'] },
    'allowedProcMountTypes[0]: expected Default or Unmasked, got "DefaultProcMount"',
  ],
  [
    { ...RULES, hostPorts: [{ min: 1, max: 65_536 }] },
    'hostPorts[0].max: expected a whole number from 0 to 65535, got 65536',
  ],
  [
    { ...RULES, forbiddenSysctls: ['kernel.*', '*.x'], allowedUnsafeSysctls: ['kernel/shm*', 'net.core.*'] },
    'forbiddenSysctls[1]: expected a sysctl, or a prefix and "*", got "*.x"',
    'allowedUnsafeSysctls[0]: expected a sysctl that forbiddenSysctls does not forbid',
  ],
  [
    { ...RULES, volumes: ['configmap', 'everything'] },
    'volumes[0]: unknown type of volumes "configmap": did you mean "configMap"?',
    /^volumes\[1\]: unknown type of volumes "everything": expected one of \*, awsElasticBlockStore, /,
  ],
  [
    {
      ...RULES,
      allowedHostPaths: [{ pathPrefix: 'data' }, { pathPrefix: '/data/../etc' }, { readOnly: true }, '/data'],
    },
    'allowedHostPaths[3]: expected a mapping, got "/data"',
    'allowedHostPaths[0].pathPrefix: expected an absolute path without "..", got "data"',
    'allowedHostPaths[1].pathPrefix: expected an absolute path without "..", got "/data/../etc"',
    'allowedHostPaths[2]: expected the key "pathPrefix", which is missing',
  ],
  [{ ...RULES, allowedCSIDrivers: [{ name: '' }] }, 'allowedCSIDrivers[0].name: expected some text, got ""'],
  [
    { ...RULES, runtimeClass: { allowedRuntimeClassNames: ['kata'], defaultRuntimeClassName: 'gvisor' } },
    'runtimeClass.defaultRuntimeClassName: expected one of the allowed classes, got "gvisor"',
  ],
  [
    { ...RULES, volumes: Array.from({ length: MAX_LIST + 1 }, () => '*') },
    `volumes: expected at most ${MAX_LIST} elements, got ${MAX_LIST + 1}`,
  ],
] as const) {
  test(`refuses ${JSON.stringify(json).slice(0, 150)}`, () => {
    const problems = problemsOf(json);
    assert.equal(problems.length, expected.length, problems.join('\n'));
    for (const [index, text] of expected.entries()) {
      (typeof text === 'string' ? assert.equal : assert.match)(problems[index] ?? '', text as never);
    }
  });
}

test('any JSON gives settings or problems', () => {
  const key = fc.constantFrom(...POD_PROFILE_KEYS, '__proto__', 'constructor');
  const part = fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom('rule', 'ranges', 'min'), fc.jsonValue()));
  fc.assert(
    fc.property(fc.jsonValue(), fc.dictionary(key, fc.oneof(part, fc.array(part))), (value, object) => {
      for (const json of [value, object, { ...RULES, ...object }]) {
        const { settings, problems } = parsePodProfileSettings(json);
        assert.notEqual(settings === undefined, problems === undefined || problems.length === 0);
      }
    }),
  );
});
