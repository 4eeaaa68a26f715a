// `portcullis governance graph` and `portcullis explain`, on files and on an embedded cluster.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CHECK, policyOfChecks } from '../governance/governance-lab.ts';
import { ServedLab } from '../governance/served-lab.ts';
import { type CommandResult, portcullis } from './command.ts';

const FIXTURE = 'test/fixtures/governance/dependencies.yaml';

const dependsOn = (name: string) => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  name,
  namespace: 'policies',
  compliance: 'Compliant',
});

const CONFIGURATION = { apiVersion: 'policy.open-cluster-management.io/v1', kind: 'ConfigurationPolicy' } as const;

/** A ConfigurationPolicy that enforces a value of the ConfigMap `contested`. */
function enforcedConfigMap(name: string, value: string): object {
  const objectDefinition = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'contested', namespace: 'default' },
    data: { value },
  };
  return {
    ...CONFIGURATION,
    metadata: { name },
    spec: { remediationAction: 'enforce', 'object-templates': [{ complianceType: 'musthave', objectDefinition }] },
  };
}

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

describe('portcullis governance graph -f', () => {
  it('draws the policies of files without a cluster, and names what is missing', async () => {
    const result = await portcullis(['governance', 'graph', '-f', FIXTURE, '-n', 'policies']);
    assert.equal(
      succeeded(result),
      `policy policies/kafka-cluster
├─ needs Compliant: Policy policies.kafka-operator
├─ needs Compliant: PolicySet baseline
├─ needs Compliant: Deployment kafka/strimzi-cluster-operator
├─ ConfigurationPolicy kafka-report of policy policies/kafka-cluster
│  ├─ needs NonCompliant: ConfigurationPolicy kafka-cluster of policy policies/kafka-cluster
│  └─ needs Pending: OperatorPolicy strimzi
└─ ConfigurationPolicy kafka-cluster of policy policies/kafka-cluster
`,
    );
    assert.match(
      result.stderr,
      /^warning: policy policies\/kafka-cluster: Policy policies\.kafka-operator does not exist$/m,
    );
  });

  it('writes the languages of Graphviz and Mermaid, and reads standard input', async () => {
    const stdin = JSON.stringify(policyOfChecks('one', ['a'], { spec: { dependencies: [dependsOn('one')] } }));
    const dot = await portcullis(['governance', 'graph', '-f', '-', '-o', 'dot'], { stdin });
    assert.match(succeeded(dot), /^digraph dependencies \{/);
    assert.match(dot.stderr, /policy policies\/one depends on itself/);
    assert.match(
      succeeded(await portcullis(['governance', 'graph', '-f', '-', '-o', 'mermaid'], { stdin })),
      /^flowchart LR\n/,
    );
  });

  it('draws policies whose specs are not valid, and says when there are none', async () => {
    const broken = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      metadata: { name: 'x' },
      spec: [],
    };
    const set = {
      apiVersion: 'policy.open-cluster-management.io/v1beta1',
      kind: 'PolicySet',
      metadata: { name: 's' },
      spec: { policies: 3 },
    };
    const stdin = [broken, set].map((object) => JSON.stringify(object)).join('\n---\n');
    assert.equal(succeeded(await portcullis(['governance', 'graph', '-f', '-'], { stdin })), 'policy default/x\n');
    const other = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } });
    const none = await portcullis(['governance', 'graph', '-f', '-'], { stdin: other });
    assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'no policies found\n']);
  });
});

describe('governance commands on a cluster', () => {
  let served: ServedLab;
  before(async () => {
    served = await ServedLab.start();
    const { lab } = served;
    await lab.apply(
      policyOfChecks('topics', ['topics'], { spec: { dependencies: [dependsOn('kafka')] } }),
      policyOfChecks('kafka', ['cluster', 'report'], {
        extra: { cluster: { extraDependencies: [dependsOn('operator')] } },
      }),
      policyOfChecks('operator', ['subscription']),
      policyOfChecks('off', ['off'], { spec: { disabled: true } }),
    );
    await lab.appears({ ...CHECK, name: 'local-cluster/subscription' });
    await lab.setStatus({ ...CHECK, name: 'local-cluster/subscription' }, { compliant: 'NonCompliant' });
    await lab.reaches('policies/operator', 'NonCompliant');
    await lab.sees({ kind: 'Policy', name: 'policies/topics' }, (object) =>
      JSON.stringify(object?.status).includes('policies.kafka, which is Pending'),
    );
  });
  after(() => served[Symbol.asyncDispose]());

  it('draws the graph with the state of each policy', async () => {
    assert.equal(
      succeeded(await served.run('admin', 'governance', 'graph')),
      `policy policies/off [not applied]
policy policies/topics [Pending]
└─ needs Compliant: policy policies/kafka [Pending]
   └─ Check cluster of policy policies/kafka [not applied]
      └─ needs Compliant: policy policies/operator [NonCompliant]
`,
    );
    const none = await served.run('admin', 'governance', 'graph', '-n', 'default');
    assert.deepEqual([none.stdout, none.stderr], ['', 'no policies found\n']);
  });

  it('explains the chain to the root cause, and what to do', async () => {
    const text = succeeded(await served.run('admin', 'explain', 'policy/topics', '-n', 'policies'));
    assert.match(
      text,
      /^policy policies\/topics is Pending\n {2}policy policies\/topics waits for policy policies\/kafka, which is Pending.*\n {2}Check cluster of policy policies\/kafka waits for policy policies\/operator, which is NonCompliant since .*: NonCompliant\.\n/,
    );
    assert.match(
      text,
      /\n\nWhat to do:\n {2}Make policy policies\/operator Compliant\. What it lacks: portcullis explain policy\/operator -n policies\n$/,
    );
  });

  it('explains a policy whose template is not compliant, one that is disabled, and a single template', async () => {
    const operator = succeeded(await served.run('admin', 'explain', 'policy', 'operator', '-n', 'policies'));
    assert.match(operator, /^policy policies\/operator is NonCompliant\n {2}subscription reports: NonCompliant/);
    assert.match(operator, /portcullis describe check\.v1\.lab\.example\.com\/subscription -n local-cluster\n$/);
    const off = succeeded(await served.run('admin', 'explain', 'policy/off', '-n', 'policies'));
    assert.match(off, /policy policies\/off applies nowhere: the Policy is disabled\./);
    const template = succeeded(
      await served.run(
        'admin',
        'explain',
        'policy/policies.kafka',
        '-n',
        'local-cluster',
        '--template',
        'report',
        '-o',
        'json',
      ),
    );
    assert.deepEqual(JSON.parse(template), {
      policy: 'policies/kafka',
      template: 'report',
      because: ['Check report of policy policies/kafka waits for nothing.'],
      toDo: [],
    });
  });

  it('says why a template cannot be evaluated as it should, and what to do', async () => {
    const { lab } = served;
    const rival = (name: string, value: string) => ({
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      metadata: { name, namespace: 'policies' },
      spec: {
        disabled: false,
        remediationAction: 'enforce',
        'policy-templates': [{ objectDefinition: enforcedConfigMap(`${name}-templates`, value) }],
      },
    });
    await lab.apply(rival('cats', 'cats'), rival('dogs', 'dogs'));
    await lab.sees({ ...CONFIGURATION, name: 'local-cluster/cats-templates' }, (object) =>
      JSON.stringify(object?.status ?? {}).includes('"Contested"'),
    );
    const text = succeeded(await served.run('admin', 'explain', 'policy/cats', '-n', 'policies'));
    assert.match(
      text,
      /\n {2}cats-templates is not evaluated since .*: Contested: objects are changed in turn with .*dogs-templates/,
    );
    assert.match(text, /\nWhat to do:\n(?:.*\n)* {2}Let one of the two policies alone enforce these objects\.\n/);
    const data = JSON.parse(
      succeeded(await served.run('admin', 'explain', 'policy/cats', '-n', 'policies', '-o', 'json')),
    ) as { readonly rootCauses: readonly { readonly reason: string }[] };
    assert.deepEqual(
      data.rootCauses.map(({ reason }) => reason),
      ['Contested'],
    );
  });

  it('names a cycle once, also of templates that were never applied', async () => {
    const { lab } = served;
    const on = (name: string) => ({
      extraDependencies: [{ ...CHECK, name, namespace: 'local-cluster', compliance: 'Compliant' }],
    });
    await lab.apply(
      policyOfChecks('left', ['l'], { spec: { dependencies: [dependsOn('right')] } }),
      policyOfChecks('right', ['r'], { spec: { dependencies: [dependsOn('left')] } }),
    );
    await lab.sees({ kind: 'Policy', name: 'policies/left' }, (object) =>
      JSON.stringify(object?.status).includes('in the cycle'),
    );
    const way = 'policies/left → policies/right → policies/left';
    assert.equal(
      succeeded(await served.run('admin', 'explain', 'policy/left', '-n', 'policies')),
      `policy policies/left is Pending
  policy policies/left waits for policy policies/right, which waits for it in turn, for ever, in the cycle ${way}: remove one of these dependencies.

What to do:
  Remove one of the dependencies that form the cycle through policy policies/right.
`,
    );
    assert.match(succeeded(await served.run('admin', 'get', 'policy', 'left', '-n', 'policies')), /in the cycle/);
    await lab.apply(policyOfChecks('inner', ['i', 'j'], { extra: { i: on('j'), j: on('i') } }));
    await lab.sees({ kind: 'Policy', name: 'policies/inner' }, (object) =>
      JSON.stringify(object?.status).includes('in the cycle'),
    );
    const inner = succeeded(await served.run('admin', 'explain', 'policy/inner', '-n', 'policies'));
    assert.match(
      inner,
      /in the cycle policies\/inner \(Check i\) → policies\/inner \(Check j\) → policies\/inner \(Check i\)/,
    );
  });

  it('explains a PolicySet by its policies that are not Compliant', async () => {
    const { lab } = served;
    await lab.apply(policyOfChecks('fine', ['fine']));
    await lab.appears({ ...CHECK, name: 'local-cluster/fine' });
    await lab.setStatus({ ...CHECK, name: 'local-cluster/fine' }, { compliant: 'Compliant' });
    await lab.reaches('policies/fine', 'Compliant');
    const apply = (name: string, policies: readonly string[]) =>
      lab.apply({
        apiVersion: 'policy.open-cluster-management.io/v1beta1',
        kind: 'PolicySet',
        metadata: { name, namespace: 'policies' },
        spec: { policies },
      });
    await apply('base', ['fine', 'operator', 'off', 'missing']);
    await apply('calm', ['fine']);
    await lab.sees({ kind: 'PolicySet', name: 'policies/base' }, (set) => set?.status?.compliant === 'NonCompliant');
    await lab.sees({ kind: 'PolicySet', name: 'policies/calm' }, (set) => set?.status?.compliant === 'Compliant');
    assert.equal(
      succeeded(await served.run('admin', 'explain', 'policyset/base', '-n', 'policies')),
      `policyset policies/base is NonCompliant
  policy policies/missing does not exist.
  policy policies/off is disabled, and does not count.
  policy policies/operator is NonCompliant: subscription: NonCompliant

What to do:
  Create policy policies/missing, or remove it from the set.
  See why policy policies/operator is NonCompliant: portcullis explain policy/operator -n policies
`,
    );
    const calm = succeeded(await served.run('admin', 'explain', 'policyset/calm', '-n', 'policies', '-o', 'json'));
    assert.deepEqual(JSON.parse(calm), {
      policySet: 'policies/calm',
      compliant: 'Compliant',
      because: ['All 1 policies are Compliant.'],
      toDo: [],
    });
    const none = await served.run('admin', 'explain', 'policyset/none', '-n', 'policies');
    assert.match(none.stderr, /there is no policyset policies\/none/);
  });

  it('says where a policy is that the namespace does not have', async () => {
    const elsewhere = await served.run('admin', 'explain', 'policy/kafka');
    assert.equal(elsewhere.code, 1);
    assert.match(
      elsewhere.stderr,
      /there is no policy default\/kafka\nThere is one in namespace policies: name it with -n\./,
    );
    const template = await served.run('admin', 'explain', 'policy/kafka', '-n', 'policies', '--template', 'x');
    assert.match(template.stderr, /has no template x\nIts templates: cluster, report/);
    assert.equal((await served.run('admin', 'explain', 'namespace/default')).code, 2);
    const untyped = await served.run('admin', 'explain', 'kafka', '-n', 'policies');
    assert.equal(untyped.code, 2);
    assert.match(untyped.stderr, /expected TYPE\/NAME, got kafka\nName a Policy with its type: policy\/kafka\n/);
  });

  it('reads with the rights of the user', async () => {
    const forbidden = await served.run('alice', 'governance', 'graph', '-n', 'policies');
    assert.equal(forbidden.code, 1);
    assert.match(forbidden.stderr, /forbidden: User "alice" cannot list/);

    const rules = [{ apiGroups: ['policy.open-cluster-management.io'], resources: ['*'], verbs: ['get', 'list'] }];
    await served.lab.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'policies', namespace: 'policies' },
        rules,
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'policies', namespace: 'policies' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'policies' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
      },
    );
    const graph = succeeded(await served.run('alice', 'governance', 'graph', '-n', 'policies'));
    assert.match(graph, /^policy policies\/topics \[Pending\]$/m);
    const explained = succeeded(await served.run('alice', 'explain', 'policy/topics', '-n', 'policies'));
    assert.match(explained, /policies\/kafka waits for policy policies\/operator, which is NonCompliant/);
    assert.match(
      succeeded(await served.run('alice', 'explain', 'policy/operator', '-n', 'policies')),
      /policy policies\/operator: subscription: NonCompliant/,
    );
  });
});
