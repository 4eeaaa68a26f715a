// What the Prometheus operator takes: which pods are scraped, and when somebody is told.
import type { KubernetesObject } from '../../../resources/index.ts';
import { componentLabels, CONTROLLER, type InstallContext, podSelector } from './naming.ts';

const VERSION = 'monitoring.coreos.com/v1';

interface Alert {
  readonly name: string;
  readonly severity: 'critical' | 'warning';
  /** PromQL. */
  readonly when: string;
  /** How long it holds before somebody is told. */
  readonly lasting: string;
  readonly summary: string;
  readonly whatToDo: string;
}

/** The alerts, in the order of the page that explains them. */
export const ALERTS: readonly Alert[] = [
  {
    name: 'PortcullisNoLeader',
    severity: 'critical',
    // Other programs have a metric of that name.
    when: `absent(leader_election_master_status{name="${CONTROLLER}"} == 1)`,
    lasting: '5m',
    summary: 'No controller leads: policies that change are not rolled out, certificates are not renewed.',
    whatToDo: 'What serves goes on serving. Look at the pods of the controller, and at `portcullis doctor`.',
  },
  {
    name: 'PortcullisPolicyNotServing',
    severity: 'critical',
    when: 'sum by (policy_server) (portcullis_policies{phase="Error"}) > 0',
    lasting: '5m',
    summary: 'Policies on a policy server have no revision that serves.',
    whatToDo: '`kubectl get cap,ap,capg,apg -A` shows which; `kubectl describe` the reason.',
  },
  {
    name: 'PortcullisWebhooksNotWritten',
    severity: 'critical',
    when: 'max by (policy_server) (portcullis_webhook_configurations_failing) > 0',
    lasting: '5m',
    summary:
      'The API server refuses the webhook configurations of a PolicyServer: policies that change do not come into force.',
    whatToDo: 'What was written before is asked. The log of the controller that leads has the reason.',
  },
  {
    name: 'PortcullisCertificateProblem',
    severity: 'critical',
    when: 'max(portcullis_certificate_problems) > 0 or min(portcullis_certificate_files_current) == 0',
    lasting: '10m',
    summary: "Secrets with certificates are missing, broken or somebody else's.",
    whatToDo:
      'Pods that run go on with what they have until it ends. `portcullis doctor` and the events of the Secrets say which.',
  },
  {
    name: 'PortcullisCertificateExpiring',
    severity: 'warning',
    when: 'min by (secret) (portcullis_certificate_expiry_timestamp_seconds) - time() < 7 * 24 * 3600',
    lasting: '1h',
    summary: 'A certificate ends within a week; it should have been renewed long before.',
    whatToDo:
      'Look at the log of the controller, or at cert-manager. Leave it out where certificates live for less than three weeks.',
  },
  {
    name: 'PortcullisPolicyDegraded',
    severity: 'warning',
    when: 'sum by (policy_server) (portcullis_policies{phase="Degraded"}) > 0',
    lasting: '15m',
    summary: 'The newest revision of a policy failed; an earlier one serves.',
    whatToDo: '`portcullis rollout status` says why, `rollout diff` what changed.',
  },
  {
    name: 'PortcullisReviewsSlow',
    severity: 'warning',
    when: 'histogram_quantile(0.99, sum by (le, pod) (rate(portcullis_review_duration_seconds_bucket[5m]))) > 1',
    lasting: '10m',
    summary: 'One review in a hundred takes more than a second.',
    whatToDo: 'Look for policies with timeouts, give policy servers more CPU, or more replicas.',
  },
  {
    name: 'PortcullisPolicyTimeouts',
    severity: 'warning',
    when: 'sum by (policy_name) (rate(portcullis_policy_timeouts_total[10m])) > 0',
    lasting: '10m',
    summary: 'Evaluations of a policy are cut off at their deadline again and again.',
    whatToDo: 'Its failurePolicy decides meanwhile. Mend the policy, or give it more time (timeoutEvalSeconds).',
  },
  {
    name: 'PortcullisReviewsRefused',
    severity: 'warning',
    when: 'sum by (pod, status) (rate(portcullis_requests_refused_total{status=~"5.."}[5m])) > 0',
    lasting: '5m',
    summary: 'A policy server answers reviews without asking a policy, because it cannot.',
    whatToDo: 'Look at its log; 503 while it starts is normal, later it is not.',
  },
  {
    name: 'PortcullisWorkersRestart',
    severity: 'warning',
    when: 'sum by (pod) (increase(portcullis_worker_restarts_total{reason!="renewed"}[15m])) > 5',
    lasting: '0m',
    summary: 'Workers of a policy server are replaced again and again.',
    whatToDo: 'A policy hangs or takes too much memory: its timeouts and its log say which.',
  },
  {
    name: 'PortcullisReconcileErrors',
    severity: 'warning',
    // Other programs have a metric of that name, too, and no label tells ours apart but that of their pods.
    when: `sum by (controller) (rate(controller_runtime_reconcile_errors_total{pod=~"${CONTROLLER}-.+"}[10m])) > 0.1`,
    lasting: '15m',
    summary: 'A controller fails at what it does, and tries again.',
    whatToDo: 'Its log has the reason; `portcullis doctor` finds rights that are missing.',
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
  return [monitor('controller', 'operations'), monitor('policy-server', 'readiness')];
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
