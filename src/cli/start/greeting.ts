import { join } from 'node:path';
import { ANNOTATIONS } from '../../resources/index.ts';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import { wrapParagraphs } from '../help-text.ts';
import { resetCommandFor } from './data-folder.ts';
import { EXAMPLES } from './examples-folder.ts';
import { pathFromHere } from './path-from-here.ts';
import { terminalWidth } from '../table.ts';
import { headed } from './headed.ts';

/** A change that passes validation and fails at load: the module does not exist. */
const BROKEN = '{"spec":{"module":"file:///not/there/yet.wasm"}}';
const IS_DEGRADED = "'--for=jsonpath={.status.phase}=Degraded'";

/** The status that the operator of the example would have: no node runs it here. */
const OPERATOR_RUNS = '{"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1}}';
/** Some objects of the examples are older than the policies. */
const EXISTING_LINES = [
  '',
  'Existing objects: two are older than the policies, which would reject them today.',
  '',
  '  npx portcullis findings',
  '  npx portcullis explain cap/required-labels',
];
const GOVERNANCE_LINES = [
  '',
  'Governance: three policies, of which one waits for another. See why; finish what it waits for; see it applied.',
  '',
  '  kubectl get policy -A',
  '  npx portcullis explain policy/kafka-cluster -n policies',
  `  kubectl patch deployment strimzi-cluster-operator -n kafka --subresource=status --type=merge -p '${OPERATOR_RUNS}'`,
  '  kubectl wait policy/kafka-cluster -n policies --for=jsonpath={.status.compliant}=Compliant && kubectl get kafka -A',
];

interface GreetingOptions {
  /** Of the API server. */
  readonly url: string;
  readonly kubeconfig: string;
  /** Whether the cluster was empty. */
  readonly isNew: boolean;
  /** Base URLs. */
  readonly admission: string;
  readonly operations: string;
  readonly controllerOperations: string;
  /** Undefined when there is no auditor. */
  readonly auditorOperations: string | undefined;
  readonly dataDir: string;
  readonly certificates: LocalCertificates;
  /** Whether `--examples` is set; they are applied to a new cluster only. */
  readonly withExamples: boolean;
  /** Number of policies in the cluster. */
  readonly policies: number;
  /** The ClusterRoles with the rights of Policies; undefined when governance is off. */
  readonly governanceRoles: readonly string[] | undefined;
}

export function greeting(options: GreetingOptions): string {
  const { url, admission, operations, controllerOperations, auditorOperations, dataDir, isNew, governanceRoles } =
    options;
  const rows = [
    ['Cluster', `${url}   for kubectl, see below`],
    ['Reviews', `${admission}/validate/POLICY`],
    ['Status', `${operations}/policies   (also /metrics, /readyz)`],
    ['Controller', `${controllerOperations}/metrics   (also /readyz)`],
    ['Auditor', auditorOperations === undefined ? 'off' : `${auditorOperations}/metrics   (also /readyz)`],
    ['Governance', governanceText(governanceRoles)],
    ['Data', `${pathFromHere(dataDir)}   (\`${resetCommandFor(dataDir)}\` removes it)`],
  ] as const;
  const lines = isNew ? firstLines(options) : laterLines(options);
  const text = wrapParagraphs(lines.join('\n'), terminalWidth());
  return `${headed(rows)}\n\n${text}\n\nCtrl-C stops.\n`;
}

/** A tour of a new cluster. */
function firstLines(options: GreetingOptions): readonly string[] {
  const { kubeconfig, admission, auditorOperations, certificates, withExamples, governanceRoles } = options;
  const example = (path: string): string => pathFromHere(join(EXAMPLES, path));
  const review = example('required-labels/requests/rejected.json');
  const caFile = pathFromHere(certificates.caFile);
  const policy = 'cap/pinned-images';
  return [
    'In another terminal: apply a policy; be rejected by it; break it, and see why it still serves; roll it back.',
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    `  kubectl apply -f ${example('pinned-images/policy.yaml')}`,
    '  kubectl run web --image=nginx',
    `  kubectl patch ${policy} --type=merge -p '${BROKEN}' && kubectl wait ${policy} ${IS_DEGRADED} && kubectl describe ${policy}`,
    `  kubectl annotate ${policy} ${ANNOTATIONS.rollbackTo}=previous`,
    '',
    'Without kubectl, `npx portcullis` does the same: apply (a pod by its manifest), patch, get, describe, events, wait, delete, rollout.',
    `\`npx portcullis rollout history ${policy}\` lists its revisions.`,
    ...(withExamples
      ? [
          '',
          'Reviews can be sent by anybody:',
          '',
          `  curl --cacert ${caFile} -H 'Content-Type: application/json' -d @${review} ${admission}/validate/kw.cap.required-labels`,
        ]
      : []),
    ...(withExamples && auditorOperations !== undefined ? EXISTING_LINES : []),
    ...(withExamples && governanceRoles !== undefined ? GOVERNANCE_LINES : []),
  ];
}

/** What there is in a cluster of an earlier start, which its user may have changed. */
function laterLines({ kubeconfig, dataDir, withExamples, policies }: GreetingOptions): readonly string[] {
  const count = policies === 1 ? '1 policy' : `${policies} policies`;
  return [
    `This is the cluster of an earlier start, with ${count} and all that was changed in it.`,
    ...(withExamples
      ? [`Examples are added to a new cluster only: \`${resetCommandFor(dataDir)}\`, then start again.`]
      : []),
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    '  npx portcullis get',
  ];
}

/** Policies have the rights of these ClusterRoles, whoever writes them. */
function governanceText(roles: readonly string[] | undefined): string {
  if (roles === undefined) {
    return 'off';
  }
  return `Policies have the rights of ${roles.length === 0 ? 'no ClusterRole' : roles.join(', ')}   (--governance-role)`;
}
