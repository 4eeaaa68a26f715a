// Checks for leftovers of Kubewarden, and whether it still runs.
import { type KubernetesObject, KUBEWARDEN_FINALIZERS, POLICY_KINDS, textOf } from '../../resources/index.ts';
import { isKubewardenController, KUBEWARDEN_CONFIGURATION, KUBEWARDEN_WEBHOOK, runs } from '../kubewarden.ts';
import { DEPLOYMENTS } from '../kinds.ts';
import { configurationName, isOurConfiguration, webhooksOf } from '../our-configurations.ts';
import { nameOf, policyIds } from './check-policies.ts';
import { type Finding, finding } from './finding.ts';
import { isUnread, type Snapshot } from './snapshot.ts';

export function checkKubewarden(snapshot: Snapshot): readonly Finding[] {
  const controllers = snapshot.deployments.filter((one) => isKubewardenController(one) && runs(one));
  const running = controllers.map(({ metadata }) =>
    finding(
      'KubewardenRuns',
      `deployment/${metadata.name} -n ${metadata.namespace}`,
      "Kubewarden's controller runs: PolicyServers that it made, and their policies, are its own",
      'docs/migration.md describes the migration to Portcullis, and running both side by side.',
    ),
  );
  const isKnown = controllers.length > 0 || isUnread(snapshot, DEPLOYMENTS);
  const left = isKnown ? [] : [...leftConfigurations(snapshot), ...leftFinalizers(snapshot)];
  return [...running, ...left];
}

/** Webhook configurations without a controller that maintains them. */
function leftConfigurations(snapshot: Snapshot): readonly Finding[] {
  const ids = policyIds(snapshot);
  const isPartial = POLICY_KINDS.some((type) => isUnread(snapshot, type));
  return snapshot.configurations
    .filter((one) => !isOurConfiguration(one, snapshot.namespace))
    .flatMap((configuration) => {
      const where = configurationName(configuration);
      const { name = '' } = configuration.metadata;
      const remove = `kubectl delete ${where}`;
      if (name.startsWith(KUBEWARDEN_CONFIGURATION)) {
        const message = "Kubewarden's controller is gone, and API servers ask it about every change of a policy";
        return [finding('KubewardenControllerWebhookLeft', where, message, remove)];
      }
      const isOfPolicy = webhooksOf(configuration).some(({ name: webhook }) =>
        textOf(webhook).endsWith(KUBEWARDEN_WEBHOOK),
      );
      if (!isOfPolicy) {
        return [];
      }
      const isGone = !isPartial && !ids.has(name) && !isNamed(configuration, snapshot);
      const message = isGone
        ? "it is of a policy that is gone; Kubewarden's controller is, too"
        : "Kubewarden's controller is gone; its policy server is asked besides Portcullis";
      const action = isGone ? remove : `When the policy is active in Portcullis: ${remove}`;
      return [finding('KubewardenWebhookLeft', where, message, action, isGone ? 'error' : 'warning')];
    });
}

/** Prefixes of policy ids in earlier versions of Kubewarden. */
const FORMER_PREFIXES: Readonly<Record<string, string>> = {
  ClusterAdmissionPolicy: 'clusterwide-',
  AdmissionPolicy: 'namespaced-',
  ClusterAdmissionPolicyGroup: 'clusterwide-group-',
  AdmissionPolicyGroup: 'namespaced-group-',
};

/** Whether the policy of a configuration exists: the one that it names, or is named after. */
function isNamed({ metadata }: KubernetesObject, { policies }: Snapshot): boolean {
  const formerId = (policy: Snapshot['policies'][number]): string =>
    FORMER_PREFIXES[policy.kind] + [policy.metadata.namespace, policy.metadata.name].filter(Boolean).join('-');
  if (policies.some((policy) => formerId(policy) === metadata.name)) {
    return true;
  }
  const { kubewardenPolicyName: name, kubewardenPolicyNamespace: namespace = '' } = metadata.annotations ?? {};
  return policies.some((policy) => policy.metadata.name === name && (policy.metadata.namespace ?? '') === namespace);
}

function leftFinalizers({ policies, policyServers }: Snapshot): readonly Finding[] {
  return [...policies, ...policyServers].flatMap((object) => {
    const { finalizers = [], deletionTimestamp, name, namespace } = object.metadata;
    const found = finalizers.find((one) => KUBEWARDEN_FINALIZERS.has(one));
    if (found === undefined) {
      return [];
    }
    const isLeaving = deletionTimestamp !== undefined;
    const message = isLeaving
      ? `it is being deleted, but no controller removes its finalizer ${found}`
      : `it has the finalizer ${found}, which no controller removes: its deletion will not end`;
    const where = `${object.kind.toLowerCase()} ${name}${namespace === undefined ? '' : ` -n ${namespace}`}`;
    const action = `kubectl patch ${where} --type=merge -p '{"metadata":{"finalizers":null}}'`;
    return [finding('KubewardenFinalizer', nameOf(object), message, action, isLeaving ? 'error' : 'warning')];
  });
}
