// All objects of an installation. tools/chart.ts writes the Helm chart and the plain manifests from them, and
// `portcullis install` applies them.
import {
  ALL_KINDS,
  customResourceDefinition,
  type KubernetesObject,
  type OwnKind,
  REPORT_FORMATS,
  reportDefinitions,
  type ReportApi,
  valueAt,
} from '../resources/index.ts';
import { auditor } from './objects/auditor-objects.ts';
import { accessGuard } from './objects/access-guard.ts';
import { contextAwareAccess, controllerAccess, namespaceAccess, userRoles } from './objects/access-objects.ts';
import { certManagerCertificates } from './objects/certificate-objects.ts';
import { withoutComments } from './objects/comments.ts';
import { controllerDeployment, controllerService } from './objects/controller-objects.ts';
import { GOVERNANCE_ROLES, governanceAccess, governanceBindings } from './objects/governance-objects.ts';
import { podMonitors, prometheusRule } from './objects/monitoring-objects.ts';
import { type InstallContext, PRODUCT_LABELS } from './objects/naming.ts';
import { annotationAccess } from './objects/annotation-access.ts';
import { networkPolicyAccess } from './objects/network-policy-objects.ts';
import { exceptionGuards } from './objects/exception-guards.ts';
import { recordGuards } from './objects/record-guards.ts';
import { networkPolicies } from './objects/network-objects.ts';
import { defaultPolicyServer, recommendedPolicies } from './objects/policy-objects.ts';
import { uninstallHook } from './objects/uninstall-hook.ts';

/** Objects that are installed together or not at all. */
export interface InstallPart {
  /** The name of its file in the chart. */
  readonly name: string;
  /** The path of the value that switches it on. Default: it is always installed. */
  readonly when?: string;
  /** The value that switches it on. Default: true. */
  readonly is?: string;
  /** The path of a list of texts, each of which has an object. */
  readonly each?: string;
  readonly objects: (context: InstallContext) => readonly KubernetesObject[];
}

/** Sorted for applying: dependencies come first. Their objects have comments. */
export const INSTALL_PARTS: readonly InstallPart[] = [
  { name: 'namespace', objects: namespaceObject },
  { name: 'crds', objects: () => ALL_KINDS.map(labelledDefinition) },
  { name: 'access-guard', objects: accessGuard },
  { name: 'record-guards', objects: recordGuards },
  { name: 'exception-guards', objects: exceptionGuards },
  { name: 'access', objects: controllerAccess },
  ...(['own', 'external'] as const).map((mode) => ({
    name: `access-${mode}-certificates`,
    when: 'certificates.mode',
    is: mode,
    objects: (context: InstallContext) => namespaceAccess(mode, context),
  })),
  { name: 'context-aware', objects: contextAwareAccess },
  { name: 'governance', when: 'governance.enabled', objects: governanceAccess },
  {
    name: GOVERNANCE_ROLES,
    when: 'governance.enabled',
    each: 'governance.roles',
    objects: ({ namespace, values }) => governanceBindings(namespace, values.governance.roles),
  },
  { name: 'network-policy-status', when: 'networkPolicyStatus.enabled', objects: networkPolicyAccess },
  ...(['write', 'remove'] as const).map((mode) => ({
    name: `network-policy-annotation-${mode}`,
    when: 'networkPolicyStatus.annotation',
    is: mode,
    objects: annotationAccess,
  })),
  {
    name: 'user-roles',
    when: 'userRoles.enabled',
    objects: ({ values }) => userRoles(values.userRoles.aggregateWrite),
  },
  { name: 'network-policies', when: 'networkPolicy.enabled', objects: networkPolicies },
  { name: 'certificates', when: 'certificates.certManager.enabled', objects: certManagerCertificates },
  { name: 'service', objects: controllerService },
  { name: 'deployment', objects: controllerDeployment },
  ...(['openreports', 'wgpolicyk8s'] as const).map((name) => ({
    name: name === 'openreports' ? 'report-kinds' : `report-kinds-${name}`,
    when: 'auditor.reports',
    is: name,
    objects: () => reportKinds(REPORT_FORMATS[name]),
  })),
  { name: 'auditor', when: 'auditor.enabled', objects: auditor },
  { name: 'pod-monitors', when: 'monitoring.podMonitor.enabled', objects: podMonitors },
  { name: 'alerts', when: 'monitoring.prometheusRule.enabled', objects: prometheusRule },
  { name: 'policy-server', when: 'policyServer.enabled', objects: defaultPolicyServer },
  { name: 'recommended-policies', when: 'recommendedPolicies.enabled', objects: recommendedPolicies },
];

/** Parts that only the Helm chart has. */
export const HELM_PARTS: readonly InstallPart[] = [
  { name: 'uninstall-hook', when: 'uninstallHook.enabled', objects: uninstallHook },
];

/** The objects for these values, dependencies first. */
export function installObjects(context: InstallContext): readonly KubernetesObject[] {
  return chosenParts(context).flatMap(({ objects }) => objects(context));
}

/** The same objects with their comments, for manifests. */
export function commentedObjects(context: InstallContext): readonly KubernetesObject[] {
  return partsFor(context).flatMap(({ objects }) => objects(context));
}

/** The parts for these values. Their objects have no comments. */
export function chosenParts(context: InstallContext): readonly InstallPart[] {
  return partsFor(context).map((part) => ({ ...part, objects: (given) => withoutComments(part.objects(given)) }));
}

function partsFor({ values }: InstallContext): readonly InstallPart[] {
  return INSTALL_PARTS.filter(
    ({ when, is = true }) => when === undefined || valueAt(values, ...when.split('.')) === is,
  );
}

/** Enforces the restricted Pod Security Standard, so that no unrestricted pod can use the rights of our service accounts. */
function namespaceObject({ namespace }: InstallContext): readonly KubernetesObject[] {
  const modes = ['enforce', 'audit', 'warn'];
  const labels = Object.fromEntries(modes.map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']));
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { ...PRODUCT_LABELS, ...labels } } },
  ];
}

/** Others may write reports of these kinds, so that Helm keeps them, too. */
function reportKinds(format: ReportApi): readonly KubernetesObject[] {
  return reportDefinitions(format).map(({ metadata, ...definition }) => ({
    ...definition,
    metadata: { ...metadata, labels: PRODUCT_LABELS, annotations: { 'helm.sh/resource-policy': 'keep' } },
  }));
}

function labelledDefinition(kind: OwnKind): KubernetesObject {
  const definition = customResourceDefinition(kind);
  return {
    ...definition,
    metadata: { ...definition.metadata, labels: { ...definition.metadata.labels, ...PRODUCT_LABELS } },
  };
}
