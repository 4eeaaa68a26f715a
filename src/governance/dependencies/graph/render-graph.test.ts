import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../../resources/index.ts';
import { CLUSTER, dependency, lookupIn, policyObject, rootPolicy, template } from '../testing/dependency-scene.ts';
import { DependencyGraph } from './dependency-graph.ts';
import { graphPolicy } from './graph-policy.ts';
import { graphAsDot, graphAsMermaid, graphAsText } from './render-graph.ts';

const graphOf = (...policies: readonly KubernetesObject[]): DependencyGraph =>
  new DependencyGraph(
    policies.map((policy) => graphPolicy(policy, { clusterNamespace: CLUSTER, policiesOfSet: () => undefined })),
    CLUSTER,
  );
const chain = graphOf(
  rootPolicy('strimzi', []),
  rootPolicy(
    'kafka',
    [dependency('strimzi')],
    [template('cluster'), template('topics', [dependency('quota', 'Pending')])],
  ),
  rootPolicy('app', [dependency('kafka'), dependency('strimzi', 'NonCompliant')]),
);
const lookup = lookupIn(
  policyObject('default.strimzi', { compliant: 'NonCompliant' }),
  policyObject('default.kafka', { compliant: 'Pending' }),
);
const hostile = graphOf(rootPolicy('a', [dependency(`x"];\n\\ --> <b>#quot;|\u0000`, '"|', { kind: 'Thing' })]));

describe('graphAsText', () => {
  it('prints each policy with what it depends on', () => {
    assert.equal(
      graphAsText(chain, lookup),
      [
        'policy default/app [not applied]',
        '├─ needs Compliant: policy default/kafka [Pending]',
        '│  ├─ needs Compliant: policy default/strimzi [NonCompliant]',
        '│  └─ ConfigurationPolicy topics of policy default/kafka [not applied]',
        '│     └─ needs Pending: Policy default.quota [not found]',
        '└─ needs NonCompliant: policy default/strimzi [NonCompliant]',
        '',
      ].join('\n'),
    );
  });

  it('prints cycles once, and nothing for no policies', () => {
    const cycle = graphOf(rootPolicy('a', [dependency('b')]), rootPolicy('b', [dependency('a')]));
    assert.equal(
      graphAsText(cycle),
      'policy default/a\n└─ needs Compliant: policy default/b\n   └─ needs Compliant: policy default/a (see above)\n',
    );
    assert.equal(graphAsText(graphOf()), '');
  });

  it('splits long chains, each line of which would be indented further', () => {
    const count = 3_000;
    const policies = Array.from({ length: count }, (_, index) =>
      rootPolicy(`p${index}`, index === 0 ? [] : [dependency(`p${index - 1}`)]),
    );
    const lines = graphAsText(graphOf(...policies))
      .trimEnd()
      .split('\n');
    assert.equal(new Set(lines.map((line) => /policy default\/p\d+/u.exec(line)?.[0])).size, count);
    assert.ok(lines.every((line) => line.length < 200));
    assert.equal(lines.filter((line) => line.endsWith('(see below)')).length, Math.floor((count - 1) / 40));
  });

  it('escapes names', () => {
    assert.equal(graphAsText(hostile), 'policy default/a\n└─ needs "|: Thing x"];\\u{a}\\ --> <b>#quot;|\\u{0}\n');
  });
});

describe('graphAsDot', () => {
  it('draws policies, and templates where they differ', () => {
    assert.equal(
      graphAsDot(chain, lookup),
      `digraph dependencies {
  rankdir=LR;
  node [shape=box];
  n0 [label="policy default/app [not applied]"];
  n1 [label="policy default/kafka [Pending]"];
  n2 [label="policy default/strimzi [NonCompliant]"];
  n3 [label="ConfigurationPolicy topics of policy default/kafka [not applied]"];
  n4 [label="Policy default.quota [not found]"];
  n0 -> n1 [label="Compliant"];
  n0 -> n2 [label="NonCompliant"];
  n1 -> n2 [label="Compliant"];
  n1 -> n3 [style=dashed];
  n3 -> n4 [label="Pending"];
}
`,
    );
  });

  it('escapes names', () => {
    const line = graphAsDot(hostile).split('\n')[4];
    assert.equal(line, String.raw`  n1 [label="Thing x\"];\\u{a}\\ --> <b>#quot;|\\u{0}"];`);
  });
});

describe('graphAsMermaid', () => {
  it('draws the same graph', () => {
    assert.equal(
      graphAsMermaid(graphOf(rootPolicy('a', [dependency('b')]), rootPolicy('b', []))),
      'flowchart LR\n  n0["policy default/a"]\n  n1["policy default/b"]\n  n0 -->|"Compliant"| n1\n',
    );
  });

  it('escapes names', () => {
    const [, , node, edge] = graphAsMermaid(hostile).split('\n');
    assert.equal(
      node,
      '  n1["Thing x#34;#93;#59;#92;u#123;a#125;#92; --#62; #60;b#62;#35;quot#59;#124;#92;u#123;0#125;"]',
    );
    assert.equal(edge, '  n0 -->|"#34;#124;"| n1');
  });
});
