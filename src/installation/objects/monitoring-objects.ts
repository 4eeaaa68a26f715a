// Objects for the Prometheus operator: pods to scrape, and alerts.
import type { KubernetesObject } from '../../resources/index.ts';
import { componentLabels, CONTROLLER, type InstallContext, podSelector } from './naming.ts';

const VERSION = 'monitoring.coreos.com/v1';

interface Alert {
  readonly name: string;
  readonly severity: 'critical' | 'warning';
  /** The condition in PromQL. */
  readonly when: string;
  /** How long the condition must hold before the alert fires. */
  readonly lasting: string;
  readonly summary: string;
  readonly whatToDo: string;
}

/** The alerts, in the order of docs/install.md. */
export const ALERTS: readonly Alert[] = [
  {
    name: 'PortcullisNoLeader',
    severity: 'critical',
    // Other programs have a metric of that name.
    when: `absent(leader_election_master_status{name="${CONTROLLER}"} == 1)`,
    lasting: '5m',
    summary: 'No controller leads: changed policies are not rolled out, and certificates are not renewed.',
    whatToDo: 'Revisions that serve keep serving. Check the pods of the controller, and run `portcullis doctor`.',
  },
  {
    name: 'PortcullisPolicyNotServing',
    severity: 'critical',
    when: 'sum by (policy_server) (portcullis_policies{phase="Error",enforced="true"}) > 0',
    lasting: '5m',
    summary: 'Policies on a policy server have no revision that serves: their failurePolicy answers requests.',
    whatToDo: '`kubectl get cap,admpol,capg,apg -A` shows which policies, `kubectl describe` the reason.',
  },
  {
    name: 'PortcullisWebhooksNotWritten',
    severity: 'critical',
    when: 'max by (policy_server) (portcullis_webhook_configurations_failing) > 0',
    lasting: '5m',
    summary: 'The API server refuses the webhook configurations of a PolicyServer: changed policies are not enforced.',
    whatToDo: 'The webhooks that were written before stay in force. The log of the leading controller has the reason.',
  },
  {
    name: 'PortcullisCertificateProblem',
    severity: 'critical',
    when: 'max(portcullis_certificate_problems) > 0 or min(portcullis_certificate_files_current) == 0',
    lasting: '10m',
    summary: 'Secrets with certificates are missing or invalid, or belong to another owner.',
    whatToDo:
      'Running pods use their certificates until these expire. `portcullis doctor` and the events of the Secrets say which Secrets.',
  },
  {
    name: 'PortcullisCertificateExpiring',
    severity: 'warning',
    when: 'min by (secret) (portcullis_certificate_expiry_timestamp_seconds) - time() < 7 * 24 * 3600',
    lasting: '1h',
    summary: 'A certificate expires within a week; it should have been renewed long before.',
    whatToDo:
      'Check the log of the controller, or cert-manager. Remove this alert if your certificates live for less than three weeks.',
  },
  {
    name: 'PortcullisPolicyNotEnforced',
    severity: 'warning',
    when: 'sum by (policy_server) (portcullis_policies{enforced="false"}) > 0',
    lasting: '10m',
    summary: 'Requests are admitted without a policy, for example because it has never served.',
    whatToDo:
      '`kubectl get cap,admpol,capg,apg -A` shows which policies in the column ENFORCED; `portcullis doctor` says why.',
  },
  {
    name: 'PortcullisPolicyDisarmed',
    severity: 'warning',
    when: 'sum by (policy_server) (portcullis_policies_disarmed) > 0',
    lasting: '0m',
    summary: 'Somebody ended the enforcement of policies with break-glass: requests are admitted without them.',
    whatToDo:
      '`portcullis break-glass status` says which and why, their events who; `portcullis break-glass rearm` ends it.',
  },
  {
    name: 'PortcullisPolicyDegraded',
    severity: 'warning',
    when: 'sum by (policy_server) (portcullis_policies{phase="Degraded"}) > 0',
    lasting: '15m',
    summary: 'The newest revision of a policy failed; an earlier one serves.',
    whatToDo: '`portcullis rollout status` says why, `portcullis rollout diff` what changed.',
  },
  {
    name: 'PortcullisPolicyCannotWork',
    severity: 'warning',
    when: 'sum by (policy_server, reason) (portcullis_policy_issues{reason=~"CannotMatch|CannotSucceed|InvalidParameters"}) > 0',
    lasting: '15m',
    summary:
      'A policy serves, but a rule of it matches no request, an expression fails for every object, or namespaces have invalid parameters.',
    whatToDo:
      '`kubectl get cap,admpol,capg,apg -A` shows which policies in the column REASON; `portcullis doctor` names the field or the namespaces.',
  },
  {
    name: 'PortcullisModulesNotKept',
    severity: 'warning',
    when: 'sum by (policy_server) (portcullis_policies_modules_kept{kept="false",reason!="OneNode"}) > 0',
    lasting: '1h',
    summary:
      'Too few processes have the modules of policies: when these are lost while the source of the modules is down, nothing can evaluate the policies.',
    whatToDo:
      '`portcullis doctor` names the policies and how many processes have their modules. Run two controllers and two replicas of the PolicyServer, with room for its modules, or give it a `moduleCache` on a claim or a folder of the node.',
  },
  {
    name: 'PortcullisGovernanceStopped',
    severity: 'warning',
    when: 'max(portcullis_governance_other_controllers) > 0',
    lasting: '15m',
    summary: 'A controller of Open Cluster Management runs, so the governance of Portcullis does nothing.',
    whatToDo:
      'Stop one of them: set `governance.enabled: false`, or scale its Deployment down. `portcullis doctor` names it.',
  },
  {
    name: 'PortcullisPolicyNonCompliant',
    severity: 'warning',
    when: 'max by (kind) (portcullis_governance_policies{kind="Policy",compliance="NonCompliant"}) > 0',
    lasting: '1h',
    summary: 'Policies are not complied with.',
    whatToDo: '`kubectl get policy -A` shows which, and why. Remove this alert if Policies only inform.',
  },
  {
    name: 'PortcullisNetworkPolicyOpen',
    severity: 'warning',
    when: 'max by (provider, feature, effect) (portcullis_network_policy_unsupported_features{effect=~"FailOpen|PolicyDropped|Inert"}) > 0',
    lasting: '15m',
    summary: 'NetworkPolicies use a feature with which the network provider allows more than they say.',
    whatToDo:
      '`kubectl get npst -A` shows which in the column EFFECT. Write them without the feature, or change the version of the provider: `portcullis netpol what-if` shows the difference.',
  },
  {
    name: 'PortcullisNetworkProviderUnknown',
    severity: 'warning',
    when: 'max by (provider) (portcullis_network_policies{accepted="Unknown"}) > 0',
    lasting: '1h',
    summary: 'It is not known what the network provider does with some NetworkPolicies, or which provider runs (none).',
    whatToDo:
      '`kubectl get npst -A` has the reason, `kubectl get npp` the providers. A NetworkPolicyProvider declares what is not detected.',
  },
  {
    name: 'PortcullisNetworkPolicyStatusNotWritten',
    severity: 'warning',
    // 404 and 409: the object was deleted or changed meanwhile, and is reconciled again.
    when: 'sum by (code) (rate(portcullis_network_policy_status_requests_total{code!~"200|404|409"}[10m])) > 0',
    lasting: '15m',
    summary: 'The API server refuses the statuses of NetworkPolicies: those that exist are out of date.',
    whatToDo: 'The log of the leading controller has the reason. `portcullis doctor` finds missing rights.',
  },
  {
    name: 'PortcullisNetworkPolicyCatalogueMissing',
    severity: 'warning',
    when: 'max(portcullis_network_policy_catalogue_missing) > 0',
    lasting: '15m',
    summary:
      'The configured catalogue of network providers cannot be loaded: statuses have the rows of the builtin one.',
    whatToDo: 'The log of the leading controller has the reason. It is tried again every five minutes.',
  },
  {
    name: 'PortcullisAuditorStopped',
    severity: 'warning',
    when: 'max(portcullis_auditor_absent) > 0',
    lasting: '15m',
    summary:
      'No auditor works: statuses of policies say that existing objects are not known, and reports are out of date.',
    whatToDo: 'Check the pods of the auditor. `portcullis doctor` says what is wrong with its Deployment.',
  },
  {
    name: 'PortcullisAuditIncomplete',
    severity: 'warning',
    when: 'sum by (state) (portcullis_audit_coverage{state=~"Pending|Partial|Forbidden|Failed"}) > 0',
    lasting: '30m',
    summary: 'Existing objects that policies are for could not be judged: what was not found there is not known.',
    whatToDo:
      '`portcullis doctor` names missing rights; `status.audit` of a policy has the reason of each kind. Grant rights by a ClusterRole with the label rbac.portcullis.dev/aggregate-to-auditor.',
  },
  {
    name: 'PortcullisAuditOld',
    severity: 'warning',
    when: 'time() - min by (policy) (portcullis_audit_last_complete_scan_timestamp_seconds) > 3600',
    lasting: '15m',
    summary: 'Objects of a kind have not all been judged for an hour, though they were before.',
    whatToDo: 'The log of the auditor has the reason: a list or a watch that fails, or too little of the processor.',
  },
  {
    name: 'PortcullisReviewsSlow',
    severity: 'warning',
    when: 'histogram_quantile(0.99, sum by (le, pod) (rate(portcullis_review_duration_seconds_bucket[5m]))) > 1',
    lasting: '10m',
    summary: 'One review in a hundred takes more than a second.',
    whatToDo: 'Look for policies with timeouts; give policy servers more CPU or more replicas.',
  },
  {
    name: 'PortcullisPolicyTimeouts',
    severity: 'warning',
    when: 'sum by (policy_name) (rate(portcullis_policy_timeouts_total[10m])) > 0',
    lasting: '10m',
    summary: 'Evaluations of a policy repeatedly reach their deadline.',
    whatToDo: 'Its failurePolicy applies to these requests. Fix the policy, or give it more time (timeoutEvalSeconds).',
  },
  {
    name: 'PortcullisReviewsRefused',
    severity: 'warning',
    when: 'sum by (pod, status) (rate(portcullis_requests_refused_total{status=~"5.."}[5m])) > 0',
    lasting: '5m',
    summary: 'A policy server answers reviews without evaluating a policy, because it cannot.',
    whatToDo: 'Check its log. 503 is normal only while it starts.',
  },
  {
    name: 'PortcullisWorkersRestart',
    severity: 'warning',
    when: 'sum by (pod) (increase(portcullis_worker_restarts_total{reason!="renewed"}[15m])) > 5',
    lasting: '0m',
    summary: 'Workers of a policy server are repeatedly replaced.',
    whatToDo: 'A policy hangs or uses too much memory. The timeouts by policy and the log of the server say which.',
  },
  {
    name: 'PortcullisReconcileErrors',
    severity: 'warning',
    // Other programs have a metric of that name; the label of the pod identifies ours.
    when: `sum by (controller) (rate(controller_runtime_reconcile_errors_total{pod=~"${CONTROLLER}-.+"}[10m])) > 0.1`,
    lasting: '15m',
    summary: 'A controller fails to reconcile, and retries.',
    whatToDo: 'Its log has the reason. `portcullis doctor` finds missing rights.',
  },
];

export function podMonitors({ namespace, values }: InstallContext): readonly KubernetesObject[] {
  const monitor = (component: string, port: string): KubernetesObject => ({
    apiVersion: VERSION,
    kind: 'PodMonitor',
    metadata: {
      name: `portcullis-${component}`,
      namespace,
      labels: { ...componentLabels(component), ...values.monitoring.labels },
    },
    spec: {
      selector: { matchLabels: podSelector(component) },
      podMetricsEndpoints: [{ port, path: '/metrics', interval: '30s' }],
    },
  });
  return [monitor('controller', 'operations'), monitor('auditor', 'operations'), monitor('policy-server', 'readiness')];
}

export function prometheusRule({ namespace, values }: InstallContext): readonly KubernetesObject[] {
  const rules = ALERTS.map(({ name, severity, when, lasting, summary, whatToDo }) => ({
    alert: name,
    expr: when,
    for: lasting,
    labels: { severity },
    annotations: { summary, description: whatToDo },
  }));
  return [
    {
      apiVersion: VERSION,
      kind: 'PrometheusRule',
      metadata: {
        name: 'portcullis',
        namespace,
        labels: { ...componentLabels('alerts'), ...values.monitoring.labels },
      },
      spec: { groups: [{ name: 'portcullis', rules }] },
    },
  ];
}
