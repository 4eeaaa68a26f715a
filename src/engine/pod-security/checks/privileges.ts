import type { PodSecurityCheck, PodSecurityFinding } from './check.ts';
import { unlessUserNamespace, unlessWindows } from './check.ts';
import type { Container, Pod } from '../../pods/pod.ts';
import { containerNames, fieldsOf, namedContainers, quoted, settersOf, sortedSet } from './wording.ts';

/** Checks of a container's rights: privileges, capabilities, users. */
export const PRIVILEGE_CHECKS: readonly PodSecurityCheck[] = [
  { id: 'privileged', level: 'baseline', revisions: [{ since: 0, check: privileged }] },
  {
    id: 'allowPrivilegeEscalation',
    level: 'restricted',
    revisions: [
      { since: 8, check: allowPrivilegeEscalation },
      { since: 25, check: unlessWindows(allowPrivilegeEscalation) },
    ],
  },
  { id: 'capabilities_baseline', level: 'baseline', revisions: [{ since: 0, check: addedCapabilities }] },
  {
    id: 'capabilities_restricted',
    level: 'restricted',
    revisions: [
      { since: 22, check: droppedCapabilities, overrides: ['capabilities_baseline'] },
      { since: 25, check: unlessWindows(droppedCapabilities), overrides: ['capabilities_baseline'] },
    ],
  },
  {
    id: 'runAsNonRoot',
    level: 'restricted',
    revisions: [
      { since: 0, check: runAsNonRoot },
      { since: 35, check: unlessUserNamespace(runAsNonRoot) },
    ],
  },
  {
    id: 'runAsUser',
    level: 'restricted',
    revisions: [
      { since: 23, check: runAsUser },
      { since: 35, check: unlessUserNamespace(runAsUser) },
    ],
  },
  { id: 'windowsHostProcess', level: 'baseline', revisions: [{ since: 0, check: windowsHostProcess }] },
];

/** Default capabilities of container runtimes, without NET_RAW. */
const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

function privileged({ containers }: Pod): PodSecurityFinding | undefined {
  const bad = containers.filter(({ security }) => security.privileged === true);
  if (bad.length === 0) {
    return undefined;
  }
  const names = containerNames(bad);
  return {
    reason: 'privileged',
    detail: `${namedContainers(names)} must not set securityContext.privileged=true`,
    containers: names,
    fields: fieldsOf(bad, 'securityContext.privileged'),
  };
}

function allowPrivilegeEscalation({ containers }: Pod): PodSecurityFinding | undefined {
  const bad = containers.filter(({ security }) => security.allowPrivilegeEscalation !== false);
  if (bad.length === 0) {
    return undefined;
  }
  const names = containerNames(bad);
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${namedContainers(names)} must set securityContext.allowPrivilegeEscalation=false`,
    containers: names,
    fields: fieldsOf(bad, 'securityContext.allowPrivilegeEscalation'),
  };
}

function addedCapabilities({ containers }: Pod): PodSecurityFinding | undefined {
  const bad = containers.filter((container) => adds(container, isDefaultCapability));
  return bad.length === 0
    ? undefined
    : {
        reason: 'non-default capabilities',
        detail: addedDetail(bad, isDefaultCapability),
        containers: containerNames(bad),
        fields: fieldsOf(bad, 'securityContext.capabilities.add'),
      };
}

function droppedCapabilities({ containers }: Pod): PodSecurityFinding | undefined {
  const keeping = containers.filter(keepsAny);
  const adding = containers.filter((container) => adds(container, isBindService));
  if (keeping.length === 0 && adding.length === 0) {
    return undefined;
  }
  const details: string[] = [];
  if (keeping.length > 0) {
    details.push(`${namedContainers(containerNames(keeping))} must set securityContext.capabilities.drop=["ALL"]`);
  }
  if (adding.length > 0) {
    details.push(addedDetail(adding, isBindService));
  }
  return {
    reason: 'unrestricted capabilities',
    detail: details.join('; '),
    containers: containerNames(containers.filter((one) => keepsAny(one) || adds(one, isBindService))),
    fields: [
      ...fieldsOf(keeping, 'securityContext.capabilities.drop'),
      ...fieldsOf(adding, 'securityContext.capabilities.add'),
    ],
  };
}

/** Whether a container keeps default capabilities of its runtime. */
function keepsAny({ security }: Container): boolean {
  return security.capabilities?.drop?.includes('ALL') !== true;
}

function isDefaultCapability(capability: string): boolean {
  return DEFAULT_CAPABILITIES.has(capability);
}

function isBindService(capability: string): boolean {
  return capability === 'NET_BIND_SERVICE';
}

function adds({ security }: Container, isAllowed: (capability: string) => boolean): boolean {
  return security.capabilities?.add?.every(isAllowed) === false;
}

function addedDetail(bad: readonly Container[], isAllowed: (capability: string) => boolean): string {
  const added = bad.flatMap(({ security }) => security.capabilities?.add ?? []);
  const forbidden = sortedSet(added.filter((capability) => !isAllowed(capability)));
  return `${namedContainers(containerNames(bad))} must not include ${quoted(forbidden)} in securityContext.capabilities.add`;
}

function runAsNonRoot({ holders, containers, security: podSecurity }: Pod): PodSecurityFinding | undefined {
  const reason = 'runAsNonRoot != true';
  const field = 'securityContext.runAsNonRoot';
  const refusing = holders.filter(({ security }) => security.runAsNonRoot === false);
  if (refusing.length > 0) {
    return {
      reason,
      detail: `${settersOf(refusing)} must not set securityContext.runAsNonRoot=false`,
      containers: containerNames(refusing),
      fields: fieldsOf(refusing, field),
    };
  }
  if (podSecurity.runAsNonRoot === true) {
    return undefined;
  }
  const silent = containers.filter(({ security }) => security.runAsNonRoot !== true);
  if (silent.length === 0) {
    return undefined;
  }
  const names = containerNames(silent);
  return {
    reason,
    detail: `pod or ${namedContainers(names)} must set securityContext.runAsNonRoot=true`,
    containers: names,
    fields: fieldsOf(silent, field),
  };
}

function runAsUser({ holders }: Pod): PodSecurityFinding | undefined {
  const bad = holders.filter(({ security }) => security.runAsUser === 0);
  return bad.length === 0
    ? undefined
    : {
        reason: 'runAsUser=0',
        detail: `${settersOf(bad)} must not set runAsUser=0`,
        containers: containerNames(bad),
        fields: fieldsOf(bad, 'securityContext.runAsUser'),
      };
}

function windowsHostProcess({ holders }: Pod): PodSecurityFinding | undefined {
  const bad = holders.filter(({ security }) => security.windowsOptions?.hostProcess === true);
  return bad.length === 0
    ? undefined
    : {
        reason: 'hostProcess',
        detail: `${settersOf(bad)} must not set securityContext.windowsOptions.hostProcess=true`,
        containers: containerNames(bad),
        fields: fieldsOf(bad, 'securityContext.windowsOptions.hostProcess'),
      };
}
