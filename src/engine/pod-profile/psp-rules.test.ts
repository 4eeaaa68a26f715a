// The rules of PodSecurityPolicy in Kubernetes 1.24, field by field: what is added to a pod, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPodProfile } from './admission.ts';
import { parsePodProfileSettings } from './settings.ts';

type Json = Readonly<Record<string, unknown>>;

/** A policy that restricts nothing but what has no value for it, and adds nothing. */
const ANY = {
  runAsUser: 'RunAsAny',
  fsGroup: 'RunAsAny',
  supplementalGroups: 'RunAsAny',
  seLinux: 'RunAsAny',
  volumes: ['*'],
};
const RANGES = [
  { min: 1000, max: 1999 },
  { min: 5000, max: 5000 },
];
const MUST = { rule: 'MustRunAs', ranges: RANGES };
const MAY = { rule: 'MayRunAs', ranges: RANGES };

interface Row {
  /** Settings beside {@link ANY}. */
  readonly settings: Json;
  /** Specification of the pod: one container `c` unless it names others. */
  readonly spec?: Json;
  readonly annotations?: Json;
  /** The pod's security context after the request, if it changes. */
  readonly pod?: Json;
  /** That of the first container. */
  readonly container?: Json;
  /** Other fields of the specification after the request. */
  readonly adds?: Json;
  readonly refused?: readonly string[];
}

const pod = (securityContext: Json, rest: Json = {}): Json => ({ securityContext, ...rest });
const container = (securityContext: Json, rest: Json = {}): Json => ({
  containers: [{ name: 'c', securityContext, ...rest }],
});
const S = 'spec.securityContext';
const C = 'spec.containers[0].securityContext';
const WITH_SELINUX = { rule: 'MustRunAs', seLinuxOptions: { user: 'u', role: 'r', type: 't', level: 's0:c1,c2' } };
const SELINUX = WITH_SELINUX.seLinuxOptions;
const hostPath = (path: string, mount: Json = { name: 'v', mountPath: '/m' }): Json => ({
  volumes: [{ name: 'v', hostPath: { path } }],
  containers: [{ name: 'c', volumeMounts: [mount] }],
});
const PATHS = [
  { pathPrefix: '/data/project' },
  { pathPrefix: '/etc/ldap.conf', readOnly: true },
  { pathPrefix: '/ro/', readOnly: true },
  { pathPrefix: '/ro/rw' },
];
const TOKEN = {
  sources: [
    { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    {
      downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] },
    },
  ],
};
const projected = (source: Json): Json => ({
  volumes: [{ name: 'v', projected: { sources: [...TOKEN.sources, source] } }],
});
const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/c';
const SECCOMP = 'seccomp.security.alpha.kubernetes.io/pod';

const TABLE: Readonly<Record<string, readonly Row[]>> = {
  runAsUser: [
    { settings: { runAsUser: MUST }, pod: { runAsUser: 1000 } },
    { settings: { runAsUser: MUST }, spec: pod({ runAsUser: 5000 }) },
    {
      settings: { runAsUser: MUST },
      spec: pod({ runAsUser: 0 }),
      refused: [`${S}.runAsUser: expected 1000-1999 or 5000, got 0`],
    },
    { settings: { runAsUser: MUST }, spec: container({ runAsUser: 1999 }), pod: { runAsUser: 1000 } },
    {
      settings: { runAsUser: MUST },
      spec: container({ runAsUser: 2000 }),
      refused: [`${C}.runAsUser: expected 1000-1999 or 5000, got 2000`],
    },
    {
      settings: { runAsUser: MUST },
      spec: { ...pod({ runAsUser: 1000 }), initContainers: [{ securityContext: { runAsUser: 0 } }] },
      refused: ['spec.initContainers[0].securityContext.runAsUser: expected 1000-1999 or 5000, got 0'],
    },
    { settings: { runAsUser: 'MustRunAsNonRoot' }, pod: { runAsNonRoot: true } },
    { settings: { runAsUser: 'MustRunAsNonRoot' }, spec: pod({ runAsUser: 7 }) },
    {
      settings: { runAsUser: 'MustRunAsNonRoot' },
      spec: pod({ runAsUser: 0 }),
      refused: [`${S}.runAsUser: expected another user than root, got 0`],
    },
    {
      settings: { runAsUser: 'MustRunAsNonRoot' },
      spec: pod({ runAsNonRoot: false, runAsUser: 7 }),
      refused: [`${S}.runAsNonRoot: expected true, got false`],
    },
    {
      settings: { runAsUser: 'MustRunAsNonRoot' },
      spec: container({ runAsNonRoot: false }),
      refused: [`${C}.runAsNonRoot: expected true, got false`],
    },
    {
      settings: { runAsUser: 'MustRunAsNonRoot' },
      spec: container({ runAsUser: 0 }),
      refused: [`${C}.runAsUser: expected another user than root, got 0`],
    },
    { settings: {}, spec: pod({ runAsUser: 0 }) },
  ],
  runAsGroup: [
    { settings: { runAsGroup: MUST }, pod: { runAsGroup: 1000 } },
    {
      settings: { runAsGroup: MUST },
      spec: container({ runAsGroup: 1 }),
      refused: [`${C}.runAsGroup: expected 1000-1999 or 5000, got 1`],
    },
    { settings: { runAsGroup: MAY } },
    {
      settings: { runAsGroup: MAY },
      spec: pod({ runAsGroup: 1 }),
      refused: [`${S}.runAsGroup: expected 1000-1999 or 5000, got 1`],
    },
    { settings: {}, spec: pod({ runAsGroup: 0 }) },
  ],
  fsGroup: [
    { settings: { fsGroup: MUST }, pod: { fsGroup: 1000 } },
    {
      settings: { fsGroup: MUST },
      spec: pod({ fsGroup: 0 }),
      refused: [`${S}.fsGroup: expected 1000-1999 or 5000, got 0`],
    },
    { settings: { fsGroup: MAY } },
    {
      settings: { fsGroup: MAY },
      spec: pod({ fsGroup: 2000 }),
      refused: [`${S}.fsGroup: expected 1000-1999 or 5000, got 2000`],
    },
  ],
  supplementalGroups: [
    { settings: { supplementalGroups: MUST }, pod: { supplementalGroups: [1000] } },
    {
      settings: { supplementalGroups: MUST },
      spec: pod({ supplementalGroups: [] }),
      pod: { supplementalGroups: [1000] },
    },
    {
      settings: { supplementalGroups: MUST },
      spec: pod({ supplementalGroups: [1500, 0] }),
      refused: [`${S}.supplementalGroups[1]: expected 1000-1999 or 5000, got 0`],
    },
    { settings: { supplementalGroups: MAY } },
    {
      settings: { supplementalGroups: MAY },
      spec: pod({ supplementalGroups: [1] }),
      refused: [`${S}.supplementalGroups[0]: expected 1000-1999 or 5000, got 1`],
    },
  ],
  seLinux: [
    { settings: { seLinux: WITH_SELINUX }, pod: { seLinuxOptions: SELINUX } },
    { settings: { seLinux: WITH_SELINUX }, spec: pod({ seLinuxOptions: { ...SELINUX, level: 's0:c2,c1' } }) },
    {
      settings: { seLinux: WITH_SELINUX },
      spec: pod({ seLinuxOptions: { ...SELINUX, level: 's0:c1' } }),
      refused: [`${S}.seLinuxOptions.level: expected "s0:c1,c2", got "s0:c1"`],
    },
    {
      settings: { seLinux: WITH_SELINUX },
      spec: container({ seLinuxOptions: { ...SELINUX, type: 'spc_t' } }),
      refused: [`${C}.seLinuxOptions.type: expected "t", got "spc_t"`],
    },
    { settings: {}, spec: pod({ seLinuxOptions: { type: 'spc_t' } }) },
  ],
  privileged: [
    { settings: {}, spec: container({ privileged: true }), refused: [`${C}.privileged: expected false, got true`] },
    { settings: {}, spec: container({ privileged: false }) },
    { settings: { privileged: true }, spec: container({ privileged: true }) },
    {
      settings: {},
      spec: container({ windowsOptions: { hostProcess: true } }),
      refused: [`${C}.windowsOptions.hostProcess: expected false, got true`],
    },
    {
      settings: {},
      spec: pod({ windowsOptions: { hostProcess: true } }),
      refused: [`${S}.windowsOptions.hostProcess: expected false, got true`],
    },
  ],
  allowPrivilegeEscalation: [
    { settings: {}, spec: container({ allowPrivilegeEscalation: true }) },
    { settings: { allowPrivilegeEscalation: false }, container: { allowPrivilegeEscalation: false } },
    {
      settings: { allowPrivilegeEscalation: false },
      spec: container({ allowPrivilegeEscalation: true }),
      refused: [`${C}.allowPrivilegeEscalation: expected false, got true`],
    },
    { settings: { defaultAllowPrivilegeEscalation: false }, container: { allowPrivilegeEscalation: false } },
    { settings: { defaultAllowPrivilegeEscalation: true }, container: { allowPrivilegeEscalation: true } },
    { settings: { defaultAllowPrivilegeEscalation: false }, spec: container({ allowPrivilegeEscalation: true }) },
    { settings: { privileged: true, defaultAllowPrivilegeEscalation: false }, spec: container({ privileged: true }) },
  ],
  capabilities: [
    { settings: { requiredDropCapabilities: ['ALL'] }, container: { capabilities: { drop: ['ALL'] } } },
    {
      settings: { requiredDropCapabilities: ['ALL'] },
      spec: container({ capabilities: { drop: ['KILL'] } }),
      container: { capabilities: { drop: ['KILL', 'ALL'] } },
    },
    { settings: { requiredDropCapabilities: ['ALL'] }, spec: container({ capabilities: { drop: ['ALL'] } }) },
    {
      settings: {},
      spec: container({ capabilities: { add: ['SYS_ADMIN'] } }),
      refused: [`${C}.capabilities.add[0]: expected an allowed capability, got "SYS_ADMIN"`],
    },
    {
      settings: { allowedCapabilities: ['KILL'] },
      spec: container({ capabilities: { add: ['KILL', 'kill'] } }),
      refused: [`${C}.capabilities.add[1]: expected an allowed capability, got "kill"`],
    },
    { settings: { allowedCapabilities: ['*'] }, spec: container({ capabilities: { add: ['SYS_ADMIN'] } }) },
    { settings: { defaultAddCapabilities: ['KILL'] }, container: { capabilities: { add: ['KILL'] } } },
    { settings: { defaultAddCapabilities: ['KILL'] }, spec: container({ capabilities: { drop: ['KILL'] } }) },
    {
      settings: { defaultAddCapabilities: ['KILL'], requiredDropCapabilities: ['ALL'] },
      spec: container({ capabilities: { add: ['KILL'], drop: ['ALL'] } }),
    },
  ],
  readOnlyRootFilesystem: [
    { settings: {}, spec: container({ readOnlyRootFilesystem: false }) },
    { settings: { readOnlyRootFilesystem: true }, container: { readOnlyRootFilesystem: true } },
    {
      settings: { readOnlyRootFilesystem: true },
      spec: container({ readOnlyRootFilesystem: false }),
      refused: [`${C}.readOnlyRootFilesystem: expected true, got false`],
    },
  ],
  'seccomp profiles': [
    { settings: {}, spec: pod({ seccompProfile: { type: 'RuntimeDefault' } }) },
    {
      settings: {},
      spec: pod({ seccompProfile: { type: 'Unconfined' } }),
      refused: [`${S}.seccompProfile: expected RuntimeDefault, got Unconfined`],
    },
    {
      settings: { allowedSeccompProfiles: [] },
      spec: pod({ seccompProfile: { type: 'RuntimeDefault' } }),
      refused: [`${S}.seccompProfile: expected no profile, got RuntimeDefault`],
    },
    { settings: { allowedSeccompProfiles: ['*'] }, spec: pod({ seccompProfile: { type: 'Unconfined' } }) },
    {
      settings: { allowedSeccompProfiles: ['runtime/default'], defaultSeccompProfile: 'runtime/default' },
      pod: { seccompProfile: { type: 'RuntimeDefault' } },
    },
    {
      settings: { allowedSeccompProfiles: ['localhost/a.json'], defaultSeccompProfile: 'localhost/a.json' },
      pod: { seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } },
    },
    {
      settings: { allowedSeccompProfiles: ['runtime/default'] },
      refused: [`${C}.seccompProfile: expected RuntimeDefault, got nothing`],
    },
    {
      settings: { allowedSeccompProfiles: ['runtime/default'] },
      spec: container({ seccompProfile: { type: 'RuntimeDefault' } }),
    },
    {
      settings: { allowedSeccompProfiles: ['localhost/a.json'] },
      spec: pod({ seccompProfile: { type: 'Localhost', localhostProfile: 'b.json' } }),
      refused: [`${S}.seccompProfile: expected localhost/a.json, got localhost/b.json`],
    },
    {
      settings: { defaultSeccompProfile: 'RuntimeDefault' },
      spec: container({ seccompProfile: { type: 'Unconfined' } }),
      refused: [`${C}.seccompProfile: expected RuntimeDefault, got Unconfined`],
    },
    { settings: {}, annotations: { [SECCOMP]: 'docker/default' } },
    {
      settings: {},
      annotations: { [SECCOMP]: 'unconfined' },
      refused: [`metadata.annotations[${SECCOMP}]: expected RuntimeDefault, got Unconfined`],
    },
    {
      settings: {},
      annotations: { 'container.seccomp.security.alpha.kubernetes.io/c': 'unconfined' },
      refused: [
        'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: expected RuntimeDefault, got Unconfined',
      ],
    },
  ],
  'AppArmor profiles': [
    { settings: {}, spec: pod({ appArmorProfile: { type: 'Unconfined' } }), annotations: { [APPARMOR]: 'unconfined' } },
    {
      settings: { allowedAppArmorProfiles: ['runtime/default'], defaultAppArmorProfile: 'runtime/default' },
      pod: { appArmorProfile: { type: 'RuntimeDefault' } },
    },
    {
      settings: { allowedAppArmorProfiles: ['runtime/default'] },
      refused: [`${C}.appArmorProfile: expected RuntimeDefault, got nothing`],
    },
    { settings: { allowedAppArmorProfiles: ['runtime/default'] }, annotations: { [APPARMOR]: 'runtime/default' } },
    {
      settings: { allowedAppArmorProfiles: ['runtime/default'] },
      annotations: { [APPARMOR]: 'localhost/x' },
      refused: [`metadata.annotations[${APPARMOR}]: expected RuntimeDefault, got localhost/x`],
    },
    {
      settings: { allowedAppArmorProfiles: ['runtime/default'] },
      annotations: { [APPARMOR]: 'unconfined' },
      spec: pod({ appArmorProfile: { type: 'RuntimeDefault' } }),
      refused: [`metadata.annotations[${APPARMOR}]: expected RuntimeDefault, got Unconfined`],
    },
    {
      settings: { allowedAppArmorProfiles: ['localhost/x'] },
      spec: container({ appArmorProfile: { type: 'Localhost', localhostProfile: 'y' } }),
      refused: [`${C}.appArmorProfile: expected localhost/x, got localhost/y`],
    },
    { settings: { allowedAppArmorProfiles: [] } },
  ],
  allowedProcMountTypes: [
    { settings: {}, spec: container({ procMount: 'Default' }) },
    {
      settings: {},
      spec: container({ procMount: 'Unmasked' }),
      refused: [`${C}.procMount: expected Default, got "Unmasked"`],
    },
    { settings: { allowedProcMountTypes: ['Unmasked'] }, spec: container({ procMount: 'Unmasked' }) },
    {
      settings: { allowedProcMountTypes: ['Unmasked'] },
      refused: [`${C}.procMount: expected Unmasked, got "Default"`],
    },
  ],
  'host namespaces': [
    {
      settings: {},
      spec: { hostNetwork: true, hostPID: true, hostIPC: true },
      refused: ['hostNetwork', 'hostPID', 'hostIPC'].map((field) => `spec.${field}: expected false, got true`),
    },
    {
      settings: { hostNetwork: true, hostPID: true, hostIPC: true },
      spec: { hostNetwork: true, hostPID: true, hostIPC: true },
    },
  ],
  hostPorts: [
    { settings: {}, spec: container({}, { ports: [{ containerPort: 80 }, { hostPort: 0 }] }) },
    {
      settings: {},
      spec: container({}, { ports: [{ hostPort: 80 }] }),
      refused: ['spec.containers[0].ports[0].hostPort: expected no port of the node, got 80'],
    },
    {
      settings: { hostPorts: [{ min: 80, max: 90 }] },
      spec: container({}, { ports: [{ hostPort: 80 }, { hostPort: 90 }, { hostPort: 91 }, { hostPort: -1 }] }),
      refused: [91, -1].map(
        (port, index) => `spec.containers[0].ports[${index + 2}].hostPort: expected 80-90, got ${port}`,
      ),
    },
  ],
  sysctls: [
    {
      settings: {},
      spec: pod({ sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }, { name: 'net/ipv4/tcp_syncookies' }] }),
    },
    {
      settings: {},
      spec: pod({ sysctls: [{ name: 'kernel.msgmax' }] }),
      refused: [`${S}.sysctls[0].name: expected a safe or an allowed sysctl, got "kernel.msgmax"`],
    },
    {
      settings: { allowedUnsafeSysctls: ['kernel.msg*'] },
      spec: pod({ sysctls: [{ name: 'kernel.msgmax' }, { name: 'kernel/msgmnb' }] }),
    },
    {
      settings: { forbiddenSysctls: ['net.*'] },
      spec: pod({ sysctls: [{ name: 'net/ipv4/tcp_syncookies' }] }),
      refused: [`${S}.sysctls[0].name: expected a sysctl that is not forbidden, got "net/ipv4/tcp_syncookies"`],
    },
  ],
  volumes: [
    { settings: { volumes: [] } },
    {
      settings: { volumes: [] },
      spec: { volumes: [{ name: 'v', emptyDir: {} }] },
      refused: ['spec.volumes[0]: expected a volume of an allowed type: no volumes; got "emptyDir"'],
    },
    {
      settings: { volumes: ['secret', 'configMap'] },
      spec: { volumes: [{ name: 'v', nfs: {} }] },
      refused: ['spec.volumes[0]: expected a volume of an allowed type: configMap, secret; got "nfs"'],
    },
    { settings: {}, spec: { volumes: [{ name: 'v', invented: {} }] } },
    {
      settings: { volumes: ['secret'] },
      spec: { volumes: [{ name: 'v', secret: {}, invented: {} }] },
      refused: ['spec.volumes[0]: expected a volume of an allowed type: secret; got "invented"'],
    },
    { settings: { volumes: ['emptyDir'] }, spec: { volumes: [{ name: 'v', nfs: null }] } },
    { settings: { volumes: ['secret'] }, spec: { volumes: [{ name: 'v', projected: TOKEN }] } },
    ...[
      { secret: { name: 's' } },
      { configMap: { name: 'other' } },
      { serviceAccountToken: { path: 'token', audience: 'vault' } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'spec.nodeName' } }] } },
      {},
    ].map((source): Row => ({
      settings: { volumes: ['secret'] },
      spec: projected(source),
      refused: ['spec.volumes[0]: expected a volume of an allowed type: secret; got "projected"'],
    })),
    { settings: { volumes: ['projected'] }, spec: projected({ secret: { name: 's' } }) },
  ],
  allowedHostPaths: [
    { settings: {}, spec: hostPath('/anything') },
    ...['/data/project', '/data/project/', '/data/project/a', '//data//./project/a', '/ro/rw/x'].map((path): Row => ({
      settings: { allowedHostPaths: PATHS },
      spec: hostPath(path),
    })),
    ...['/data', '/data/projectx', '/data/Project', 'data/project', '', '/', '\\data\\project'].map((path): Row => ({
      settings: { allowedHostPaths: PATHS },
      spec: hostPath(path),
      refused: [`spec.volumes[0].hostPath.path: expected an allowed path, got ${JSON.stringify(path)}`],
    })),
    ...['/data/project/../../etc', '/data/project/..', '..'].map((path): Row => ({
      settings: { allowedHostPaths: PATHS },
      spec: hostPath(path),
      refused: [`spec.volumes[0].hostPath.path: expected a path without "..", got ${JSON.stringify(path)}`],
    })),
    {
      settings: { allowedHostPaths: PATHS },
      spec: hostPath('/etc/ldap.conf'),
      refused: ['spec.containers[0].volumeMounts[0].readOnly: expected true, got nothing'],
    },
    {
      settings: { allowedHostPaths: PATHS },
      spec: hostPath('/ro/x', { name: 'v', readOnly: false }),
      refused: ['spec.containers[0].volumeMounts[0].readOnly: expected true, got false'],
    },
    { settings: { allowedHostPaths: PATHS }, spec: hostPath('/ro/x', { name: 'v', readOnly: true }) },
    {
      settings: { allowedHostPaths: [] },
      spec: hostPath('/x'),
      refused: ['spec.volumes[0].hostPath.path: expected an allowed path, got "/x"'],
    },
    {
      settings: {},
      spec: hostPath('/x', { name: 'v', subPath: 'a/../../b' }),
      refused: ['spec.containers[0].volumeMounts[0].subPath: expected a path without "..", got "a/../../b"'],
    },
    {
      settings: {},
      spec: hostPath('/x', { name: 'v', subPathExpr: '../$(A)' }),
      refused: ['spec.containers[0].volumeMounts[0].subPathExpr: expected a path without "..", got "../$(A)"'],
    },
    { settings: { allowedHostPaths: [{ pathPrefix: '/' }] }, spec: hostPath('/anything') },
  ],
  drivers: [
    {
      settings: {},
      spec: {
        volumes: [
          { name: 'v', flexVolume: { driver: 'a' } },
          { name: 'w', csi: { driver: 'b' } },
        ],
      },
    },
    {
      settings: { allowedFlexVolumes: [{ driver: 'a' }], allowedCSIDrivers: [{ name: 'b' }] },
      spec: {
        volumes: [
          { name: 'v', flexVolume: { driver: 'a' } },
          { name: 'w', csi: { driver: 'b' } },
        ],
      },
    },
    {
      settings: { allowedFlexVolumes: [{ driver: 'a' }], allowedCSIDrivers: [] },
      spec: {
        volumes: [
          { name: 'v', flexVolume: {} },
          { name: 'w', csi: { driver: 'b' } },
        ],
      },
      refused: [
        'spec.volumes[0].flexVolume.driver: expected an allowed driver, got ""',
        'spec.volumes[1].csi.driver: expected an allowed driver, got "b"',
      ],
    },
  ],
  runtimeClass: [
    { settings: {}, spec: { runtimeClassName: 'kata' } },
    {
      settings: { runtimeClass: { allowedRuntimeClassNames: ['*'], defaultRuntimeClassName: 'kata' } },
      adds: { runtimeClassName: 'kata' },
    },
    {
      settings: { runtimeClass: { allowedRuntimeClassNames: ['kata'] } },
      spec: { runtimeClassName: 'runc' },
      refused: ['spec.runtimeClassName: expected an allowed class, got "runc"'],
    },
    { settings: { runtimeClass: { allowedRuntimeClassNames: [] } } },
  ],
};

/** The result in the form of the table. */
function resultOf({
  settings: json,
  spec = {},
  annotations,
}: Row): Pick<Row, 'pod' | 'container' | 'adds' | 'refused'> {
  const { settings, problems } = parsePodProfileSettings({ ...ANY, ...json });
  assert.ok(settings !== undefined, JSON.stringify(problems));
  const object = { metadata: { annotations }, spec: { containers: [{ name: 'c' }], ...spec } };
  const request = { resource: { group: '', resource: 'pods' }, operation: 'CREATE', object };
  const { accepted, message, mutatedObject } = applyPodProfile(request, settings);
  if (!accepted) {
    return {
      refused: (message ?? '')
        .replace('violates the pod profile: ', '')
        .split('; spec.')
        .map((text, index) => (index === 0 ? text : `spec.${text}`)),
    };
  }
  const {
    securityContext: podContext = {},
    containers,
    ...rest
  } = (mutatedObject?.['spec'] ?? object.spec) as Json & { containers: readonly Json[] };
  const {
    securityContext: oldContext = {},
    containers: oldContainers,
    ...oldRest
  } = object.spec as Json & { containers: readonly Json[] };
  const contextOf = (list: readonly Json[]): Json => (list[0]?.['securityContext'] ?? {}) as Json;
  const added = (before: Json, after: Json): Json =>
    Object.fromEntries(
      Object.entries(after).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])),
    );
  return {
    pod: added(oldContext as Json, podContext as Json),
    container: added(contextOf(oldContainers), contextOf(containers)),
    adds: added(oldRest, rest),
  };
}

for (const [field, rows] of Object.entries(TABLE)) {
  for (const [index, row] of rows.entries()) {
    const { settings, spec, annotations, refused, pod: podContext = {}, container: context = {}, adds = {} } = row;
    const given = JSON.stringify(spec ?? annotations ?? 'an empty pod').slice(0, 100);
    test(`${field} ${index}: ${JSON.stringify(settings).slice(0, 100)} with ${given}`, () => {
      assert.deepEqual(
        resultOf(row),
        refused === undefined ? { pod: podContext, container: context, adds } : { refused },
      );
    });
  }
}
