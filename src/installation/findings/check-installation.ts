// Whether the parts of the product are there, and work.
import { type CertificateMode, CONTROLLER_CLUSTER_RULES, NAMESPACE_RULES } from '../objects/access-objects.ts';
import { type Grant, GOVERNANCE_GRANTS } from '../objects/governance-objects.ts';
import { ANNOTATION_GRANT, annotationGuard } from '../objects/annotation-access.ts';
import { AUDITOR_GRANTS } from '../objects/auditor-objects.ts';
import { NETWORK_POLICY_GRANT } from '../objects/network-policy-objects.ts';
import { rightText } from '../rights/rights.ts';
import {
  type AccessRule,
  DEFAULT_EXEMPT_NAMESPACES,
  isJsonObject,
  type JsonObject,
  type KubernetesObject,
  textOf,
} from '../../resources/index.ts';
import { LEASES } from '../../runtime/index.ts';
import { ACCESS_GUARDS, CRDS, DEPLOYMENTS } from '../kinds.ts';
import { accessGuard } from '../objects/access-guard.ts';
import { deploymentProgress } from '../installed-state.ts';
import { exceptionGuards } from '../objects/exception-guards.ts';
import { recordGuards } from '../objects/record-guards.ts';
import { INSTALL_PARTS } from '../install-objects.ts';
import type { InstallContext } from '../objects/naming.ts';
import { CONTROLLER, isInstalledObject } from '../objects/naming.ts';
import { isOurConfiguration } from '../our-configurations.ts';
import { isForeignGovernanceKind, takeOverHint } from '../open-cluster-management.ts';
import { isTooOld, minorVersion } from '../requirements.ts';
import { MIN_KUBERNETES } from '../requirements.ts';
import { isAudited } from './check-auditor.ts';
import { argumentOf, controllerOf, hasAvailablePods } from './controller-arguments.ts';
import { type Finding, finding } from './finding.ts';
import { isStoredAs } from './is-stored-as.ts';
import { isUnread, type Snapshot } from './snapshot.ts';

const INSTALL = 'Run `portcullis install`.';
/** Tolerance for clock differences in the age of a lease. Milliseconds. */
const LEASE_TOLERANCE_MS = 60_000;

export function checkVersion({ version }: Snapshot): readonly Finding[] {
  const numbers = minorVersion(version);
  return numbers !== undefined && isTooOld(numbers)
    ? [
        finding(
          'ApiServerTooOld',
          'API server',
          `Kubernetes ${version.gitVersion}: expected ${MIN_KUBERNETES.join('.')} or newer, for match conditions of webhooks`,
          'Upgrade the cluster.',
        ),
      ]
    : [];
}

/** The finding that there is no installation here, which explains all others; undefined where there is one. */
export function checkInstalled(snapshot: Snapshot): readonly Finding[] | undefined {
  const { definitions, deployments, namespace } = snapshot;
  if (controllerOf(snapshot) !== undefined || [CRDS, DEPLOYMENTS].some((type) => isUnread(snapshot, type))) {
    return undefined;
  }
  const other = deployments.find((one) => one.metadata.name === CONTROLLER && isInstalledObject(one))?.metadata
    .namespace;
  if (other !== undefined) {
    const message = `Portcullis is installed in namespace ${other}, not in ${namespace}`;
    return [
      finding('NotInstalled', `namespace/${namespace}`, message, `Run \`portcullis doctor --namespace ${other}\`.`),
    ];
  }
  const isLeft = snapshot.configurations.some((one) => isOurConfiguration(one, namespace));
  return isLeft || definitions.some(isInstalledObject)
    ? undefined
    : [
        finding(
          'NotInstalled',
          'cluster',
          'Portcullis is not installed: neither its kinds nor its controller exist',
          INSTALL,
        ),
      ];
}

export function checkDefinitions({ definitions, unread }: Snapshot, context: InstallContext): readonly Finding[] {
  if (isUnread({ unread }, CRDS)) {
    return [];
  }
  const wanted = INSTALL_PARTS.find(({ name }) => name === 'crds')?.objects(context) ?? [];
  const live = new Map(definitions.map((definition) => [definition.metadata.name, definition]));
  return wanted.flatMap((definition) => {
    const where = `customresourcedefinition/${definition.metadata.name}`;
    const found = live.get(definition.metadata.name);
    if (found === undefined) {
      return [finding('KindMissing', where, 'it does not exist', INSTALL)];
    }
    if (isForeignGovernanceKind(found)) {
      const message = 'it is of Open Cluster Management: API servers drop what only Portcullis writes into the status';
      return [finding('KindOwnedElsewhere', where, message, takeOverHint(found))];
    }
    const findings: Finding[] = [];
    if (!hasVersionOf(found, definition)) {
      const message = 'its schema is that of another version of Portcullis: API servers may drop fields silently';
      findings.push(finding('KindDiffers', where, message, INSTALL));
    }
    const release = found.metadata.annotations?.['meta.helm.sh/release-name'] ?? '';
    if (release.startsWith('kubewarden')) {
      const message = `it belongs to the Helm release ${release}, whose removal deletes it with all policies`;
      findings.push(
        finding('KindOwnedElsewhere', where, message, 'Take it out of that release first: docs/migration.md, step 6.'),
      );
    }
    return findings;
  });
}

/** Whether the cluster serves all versions of our definition with their schemas; other fields have defaults. */
function hasVersionOf(live: KubernetesObject, wanted: KubernetesObject): boolean {
  const versions = versionsOf(live);
  return versionsOf(wanted).every((version) => {
    const found = versions.find(({ name }) => name === version['name']);
    return found !== undefined && found['served'] === true && isStoredAs(found['schema'], version['schema']);
  });
}

function versionsOf({ spec }: KubernetesObject): readonly JsonObject[] {
  const versions = isJsonObject(spec) ? spec['versions'] : undefined;
  return Array.isArray(versions) ? versions.filter(isJsonObject) : [];
}

export function checkController(snapshot: Snapshot): readonly Finding[] {
  const { namespace } = snapshot;
  const where = `deployment/${CONTROLLER} -n ${namespace}`;
  const deployment = controllerOf(snapshot);
  if (deployment === undefined) {
    const message = 'it does not exist: changed policies are not rolled out';
    return isUnread(snapshot, DEPLOYMENTS) ? [] : [finding('ControllerMissing', where, message, INSTALL)];
  }
  const { done, text } = deploymentProgress(deployment);
  const findings: Finding[] = [];
  if (!done) {
    findings.push(
      finding(
        'ControllerNotAvailable',
        where,
        text,
        `Look at its pods: kubectl -n ${namespace} describe pods -l app.kubernetes.io/component=controller`,
        hasAvailablePods(deployment) ? 'warning' : 'error',
      ),
    );
  }
  const exempt = argumentOf(deployment, '--exempt-namespaces') ?? '';
  if (exempt !== '' && exempt !== DEFAULT_EXEMPT_NAMESPACES.join(',')) {
    findings.push(
      finding(
        'ExemptNamespaces',
        where,
        `cluster-wide policies do not cover the namespaces ${exempt.split(',').join(', ')}`,
        'Usually intended. The value exemptNamespaces changes it.',
      ),
    );
  }
  return [...findings, ...checkRolloutSettings(deployment, where)];
}

const DEGRADED_EFFECTS: ReadonlyMap<string | undefined, string> = new Map([
  ['reject', 'the failurePolicy of a policy answers requests while its newest revision fails'],
  ['ignore', 'a policy is not enforced while its newest revision fails'],
]);

/** Reports settings for all policies that are not the defaults. A policy that is silently off is worth a warning. */
function checkRolloutSettings(controller: KubernetesObject, where: string): readonly Finding[] {
  const findings: Finding[] = [];
  const degraded = argumentOf(controller, '--degraded-policies');
  const effect = DEGRADED_EFFECTS.get(degraded);
  if (effect !== undefined) {
    const action = 'Intended? The value controller.degradedPolicies changes it; last-good is the default.';
    const severity = degraded === 'ignore' ? 'warning' : 'info';
    findings.push(finding('DegradedPolicies', where, `--degraded-policies=${degraded}: ${effect}`, action, severity));
  }
  if (argumentOf(controller, '--unserved-policies') === 'reject') {
    const message =
      '--unserved-policies=reject: the failurePolicy of a policy that has never served answers requests while it fails';
    const action = 'Intended? The value controller.unservedPolicies changes it; ignore is the default.';
    findings.push(finding('UnservedPolicies', where, message, action));
  }
  return findings;
}

/** Whether the controller or another program manages the certificates. */
export function certificateMode(controller: KubernetesObject): CertificateMode {
  return argumentOf(controller, '--certificates') === 'external' ? 'external' : 'own';
}

export function checkLeader(snapshot: Snapshot): readonly Finding[] {
  const { leases, namespace, now } = snapshot;
  const where = `lease/${CONTROLLER} -n ${namespace}`;
  const controller = controllerOf(snapshot);
  // Without a pod there is no leader: that is the finding.
  if (controller === undefined || !hasAvailablePods(controller) || isUnread(snapshot, LEASES)) {
    return [];
  }
  const action = 'Look at the log of the controller.';
  const lease = leases.find(({ metadata }) => metadata.name === CONTROLLER);
  const spec = isJsonObject(lease?.['spec']) ? lease['spec'] : {};
  const holder = textOf(spec['holderIdentity']);
  if (holder === '') {
    return [finding('NoLeader', where, 'it has no holder', action)];
  }
  const age = now - Date.parse(textOf(spec['renewTime']));
  const limit = Number(spec['leaseDurationSeconds'] ?? 0) * 1000 + LEASE_TOLERANCE_MS;
  return age > limit
    ? [finding('NoLeader', where, `${holder} has not renewed it for ${Math.round(age / 1000)} s`, action)]
    : [];
}

/** Whether the policies that limit rights are there, with their bindings. */
export function checkAccessGuard(snapshot: Snapshot, context: InstallContext): readonly Finding[] {
  const { guards } = snapshot;
  const controller = controllerOf(snapshot);
  if (controller === undefined || ACCESS_GUARDS.some((type) => isUnread(snapshot, type))) {
    return [];
  }
  const unlimited = (wanted: readonly KubernetesObject[], effect: string): readonly Finding[] =>
    wanted
      .filter((one) => !guards.some(({ kind, metadata }) => kind === one.kind && metadata.name === one.metadata.name))
      .map(({ kind, metadata }) => {
        const message = `it does not exist: ${effect}`;
        return finding('RightsUnlimited', `${kind.toLowerCase()}/${metadata.name}`, message, INSTALL);
      });
  return [
    ...unlimited(accessGuard(context), 'the controller may change every ClusterRole and ClusterRoleBinding'),
    ...unlimited(
      recordGuards(context),
      'PolicyRevisions and PolicyServerReplicas may be changed by whoever has the right, which may end the enforcement of policies',
    ),
    ...unlimited(
      exceptionGuards(context),
      'nobody is asked who may except from policies, and new exceptions are not accepted',
    ),
    ...(mayAnnotate(controller)
      ? unlimited(annotationGuard(context), 'the controller may change every NetworkPolicy')
      : []),
  ];
}

/** Whether the controller writes or removes the annotation of NetworkPolicies. */
function mayAnnotate(controller: KubernetesObject): boolean {
  return ['write', 'remove'].includes(argumentOf(controller, '--network-policy-annotation') ?? '');
}

function neededRoles(controller: KubernetesObject): readonly Grant[] {
  const name = CONTROLLER;
  const account = CONTROLLER;
  const own: readonly Grant[] = [
    { kind: 'ClusterRole', name, account, rules: CONTROLLER_CLUSTER_RULES },
    { kind: 'Role', name, account, rules: NAMESPACE_RULES[certificateMode(controller)] },
  ];
  const isOff = (flag: string): boolean => argumentOf(controller, flag) === 'false';
  return [
    ...own,
    ...(isOff('--governance') ? [] : GOVERNANCE_GRANTS),
    ...(isOff('--network-policy-status') ? [] : [NETWORK_POLICY_GRANT]),
    ...(mayAnnotate(controller) ? [ANNOTATION_GRANT] : []),
    ...(isAudited(controller) ? AUDITOR_GRANTS : []),
  ];
}

/** Compares the rights of the product's accounts with those that they need. */
export function checkRoles(snapshot: Snapshot): readonly Finding[] {
  const { roles, bindings, namespace, unread } = snapshot;
  const controller = controllerOf(snapshot);
  if (controller === undefined || unread.some(({ what }) => /role/.test(what))) {
    return [];
  }
  return neededRoles(controller).flatMap(({ kind, name, account, rules }) => {
    const where = `${kind.toLowerCase()}/${name}${kind === 'Role' ? ` -n ${namespace}` : ''}`;
    const named = (object: KubernetesObject, of: string): boolean =>
      object.kind === of && object.metadata.name === name;
    const role = roles.find((one) => named(one, kind));
    const missing = missingOf(rules, (role?.['rules'] ?? []) as readonly Partial<AccessRule>[]);
    const isBound = bindings.some((one) => named(one, `${kind}Binding`) && isFor(one, account, namespace));
    const problems = [
      ...(isBound ? [] : [`it is not bound to the service account ${account}`]),
      ...(missing.length === 0 ? [] : [`${account} may not: ${missing.join('; ')}`]),
    ];
    return problems.length === 0 ? [] : [finding('RightsMissing', where, problems.join('; '), INSTALL)];
  });
}

/** Whether a binding is for an account of this namespace. Installations in other namespaces use the same names. */
function isFor(
  { subjects }: KubernetesObject & { readonly subjects?: unknown },
  account: string,
  namespace: string,
): boolean {
  const all: readonly unknown[] = Array.isArray(subjects) ? subjects : [];
  return all.some((one) => isJsonObject(one) && one['name'] === account && one['namespace'] === namespace);
}

/** The rights that no rule grants, such as `patch policyservers.policies.kubewarden.io`. */
function missingOf(wanted: readonly AccessRule[], live: readonly Partial<AccessRule>[]): readonly string[] {
  const has = (list: readonly string[] | undefined, one: string): boolean =>
    list?.includes(one) === true || list?.includes('*') === true;
  const isGranted = (group: string, resource: string, verb: string, name: string | undefined): boolean =>
    live.some(
      ({ apiGroups, resources, verbs, resourceNames = [] }) =>
        has(apiGroups, group) &&
        has(resources, resource) &&
        has(verbs, verb) &&
        (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name))),
    );
  const missing = wanted.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) =>
          resourceNames
            .filter((name) => !isGranted(group, resource, verb, name))
            .map((name) => rightText({ verb, group, resource, ...(name === undefined ? {} : { name }) })),
        ),
      ),
    ),
  );
  return [...new Set(missing)];
}

/** Unrestricted pods in the product's namespace could use the rights of its service accounts. */
export function checkNamespace({ namespaces, namespace }: Snapshot): readonly Finding[] {
  const found = namespaces.find(({ metadata }) => metadata.name === namespace);
  const label = 'pod-security.kubernetes.io/enforce';
  return found === undefined || found.metadata.labels?.[label] === 'restricted'
    ? []
    : [
        finding(
          'NamespaceUnrestricted',
          `namespace/${namespace}`,
          'it does not enforce the restricted Pod Security Standard',
          `kubectl label namespace ${namespace} ${label}=restricted --overwrite`,
        ),
      ];
}
