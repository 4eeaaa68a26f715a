// Open Cluster Management: a policy that waits for another one is Pending without a reason in its status, for ever where the other one
// does not exist or waits for it in turn.
import type { WalkChapter } from '../walk-step.ts';
import { applyObject } from './policies.ts';

const GROUP = 'policy.open-cluster-management.io';
const NAMESPACE = 'policies';

interface PolicyOptions {
  readonly action?: 'inform' | 'enforce';
  readonly needs?: string;
  readonly namespace?: string;
}

/** A Policy that wants a ConfigMap with its name. */
function policy(name: string, { action = 'enforce', needs, namespace = NAMESPACE }: PolicyOptions = {}): object {
  const dependency = { apiVersion: `${GROUP}/v1`, kind: 'Policy', name: needs, namespace: NAMESPACE };
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE } };
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace },
    spec: {
      disabled: false,
      remediationAction: action,
      ...(needs === undefined ? {} : { dependencies: [{ ...dependency, compliance: 'Compliant' }] }),
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name },
            spec: { 'object-templates': [{ complianceType: 'musthave', objectDefinition: configMap }] },
          },
        },
      ],
    },
  };
}

const SET = {
  apiVersion: `${GROUP}/v1beta1`,
  kind: 'PolicySet',
  metadata: { name: 'platform', namespace: NAMESPACE },
  spec: { policies: ['storage', 'database', 'monitoring'] },
};
const configMaps = (gets: RegExp, name: string) => ({
  path: `/api/v1/namespaces/${NAMESPACE}/configmaps`,
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
  gets,
});

export const DEPENDENCIES: WalkChapter = {
  title: '4 what a policy waits for',
  steps: [
    {
      by: 'admin',
      shows: 'applies two policies in order, and a set with one more, which does not exist',
      sh: [
        `kubectl create namespace ${NAMESPACE}`,
        applyObject(policy('storage', { action: 'inform' })),
        applyObject(policy('database', { needs: 'storage' })),
        applyObject(policy('mine', { needs: 'storage', namespace: 'shop' })),
        applyObject(SET),
      ].join('\n'),
      prints: [/^Warning: spec\.policies\[2\]: Policy policies\/monitoring does not exist yet \[set-member\]$/m],
    },
    {
      by: 'reader',
      shows: 'sees that the account of governance lacks a right, of the policy and in doctor',
      sh: `kubectl get policy -n ${NAMESPACE}; portcullis explain policy/storage -n ${NAMESPACE}; portcullis doctor`,
      prints: [
        /^storage +inform +NonCompliant .*configmaps is forbidden/m,
        /The governance account may not: list configmaps|configmaps is forbidden: User "system:serviceaccount:portcullis:portcullis-governance"/,
        /^warning PolicyRightsMissing: /m,
      ],
    },
    {
      by: 'admin',
      shows: 'grants the rights that are printed for it',
      sh: `portcullis governance rights --name governs | kubectl apply -f -
        portcullis install --governance-role governs > installed; tail -1 installed`,
      prints: [/governs created\n/, /^Portcullis is installed in namespace portcullis\./m],
    },
    {
      by: 'reader',
      shows: 'sees what waits for what, why, and what to do',
      sh: `kubectl get policy,policyset -n ${NAMESPACE}; portcullis explain policy/database -n ${NAMESPACE}
        portcullis explain policyset/platform -n ${NAMESPACE}; portcullis governance graph -n ${NAMESPACE}`,
      prints: [
        /\/database +enforce +Pending +\S+ +database waits for Policy policies\.storage, which is NonCompliant$/m,
        /\/storage +inform +NonCompliant +\S+ +storage: violation - configmaps \[storage\] not found in namespace policies$/m,
        /\/platform +NonCompliant +\S+ +Policies awaiting pending dependencies: database; Deleted policies: monitoring$/m,
        /waits for policy policies\/storage, which is NonCompliant since \S+: violation - configmaps \[storage\] not found/,
        /^ {2}policy policies\/monitoring does not exist\.$/m,
        /^policy policies\/database \[Pending\]\n└─ needs Compliant: policy policies\/storage \[NonCompliant\]$/m,
      ],
      probes: [configMaps(/^201$/, 'database')],
    },
    {
      by: 'tenant',
      shows: 'sees why the own policy waits, without the right to read what it waits for',
      sh: 'kubectl get policy; portcullis explain policy/mine; portcullis governance graph',
      prints: [
        /^mine +enforce +Pending +\S+ +mine waits for Policy policies\.storage, which is NonCompliant$/m,
        /^ {2}policy shop\/mine: mine waits for Policy policies\.storage, which is NonCompliant\.$/m,
        /You may not read Policy policies\.storage: ask for the right to read it/,
      ],
      omits: /does not exist/,
    },
    {
      by: 'admin',
      shows: 'makes the first one compliant, and applies two policies that wait for each other',
      sh: [
        `kubectl create configmap storage -n ${NAMESPACE}`,
        applyObject(policy('chicken', { needs: 'egg' })),
        applyObject(policy('egg', { needs: 'chicken' })),
      ].join('\n'),
      prints: [/configmap\/storage created/, /^Warning: spec: dependencies form a cycle: .*\[dependency-cycle\]$/m],
    },
    {
      by: 'reader',
      shows: 'sees that what waited is applied, and what waits for ever',
      sh: `kubectl wait policy/database -n ${NAMESPACE} --for=jsonpath={.status.compliant}=Compliant
        kubectl get policy -n ${NAMESPACE}; kubectl get policyset -n ${NAMESPACE}
        portcullis explain policy/chicken -n ${NAMESPACE}`,
      prints: [
        /^storage +inform +Compliant /m,
        /^database +enforce +Compliant /m,
        /^chicken +enforce +Pending +.*egg, which waits for it in turn, in the cycle /m,
        /^platform +\S+ +Deleted policies: monitoring$/m,
        /^ {2}Remove one of the dependencies that form the cycle through policy policies\/egg\.$/m,
      ],
      probes: [configMaps(/^409 .*"database" already exists/, 'database'), configMaps(/^201$/, 'egg')],
    },
    {
      by: 'tenant',
      shows: 'sees that the own policy is applied, too',
      sh: 'kubectl get policy mine',
      prints: [/^mine +enforce +Compliant /m],
      probes: [configMaps(/^409 .*"mine" already exists/, 'mine')],
    },
    {
      by: 'admin',
      shows: 'applies the policy that the set lacks, and ends the cycle',
      sh: `${applyObject(policy('monitoring'))}\n${applyObject(policy('egg'))}`,
      prints: [/monitoring created\n.*egg configured/],
    },
    {
      by: 'reader',
      shows: 'sees that all of it is applied',
      sh: `kubectl get policy -n ${NAMESPACE}; kubectl get policyset -n ${NAMESPACE}
        portcullis explain policyset/platform -n ${NAMESPACE}`,
      prints: [
        /^chicken +enforce +Compliant /m,
        /^platform +Compliant +\S+ +All policies are reporting status$/m,
        /^ {2}All 3 policies are Compliant\.$/m,
      ],
      probes: [configMaps(/^409 .*"chicken" already exists/, 'chicken')],
    },
  ],
};
