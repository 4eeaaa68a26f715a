import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import { EmbeddedCluster } from '../../index.ts';
import { type KubernetesObject, knownKind } from '../../../resources/index.ts';

/** Objects that test/e2e/builtin-kinds.full.test.ts writes to a real API server as well. */
const OBJECTS = loadAll(
  readFileSync(new URL('../../../../test/e2e/builtin-kinds/warned.yaml', import.meta.url), 'utf8'),
) as readonly KubernetesObject[];

/** What kube-apiserver v1.34.4 said. */
const HIDES = (path: string, name: string): string =>
  `${path}: hides previous definition of "${name}", which may be dropped when using apply`;
const AMBIGUOUS = (path: string, value: string, network: string, single: string): string =>
  `${path}: CIDR value "${value}" is ambiguous in this context (should be "${network}" or "${single}"?)`;
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  environment: [
    'spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead',
    'spec.imagePullSecrets[0].name: invalid empty name ""',
    HIDES('spec.initContainers[0].env[1]', 'A'),
    HIDES('spec.containers[0].env[1]', 'B'),
    HIDES('spec.containers[0].env[3]', 'B'),
    'spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]',
    'spec.containers[0].ports[3]: overlapping port definition with spec.containers[0].ports[0]',
    'spec.containers[0].ports[3]: overlapping port definition with spec.containers[0].ports[1]',
    'spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]',
    'spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[1]',
    'spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[3]',
    'spec.containers[1].ports[2]: duplicate port definition with spec.containers[1].ports[1]',
  ],
  templates: [HIDES('spec.template.spec.containers[0].env[1]', 'A')],
  scheduled: [HIDES('spec.jobTemplate.spec.template.spec.containers[0].env[1]', 'A')],
  'host-bits': [
    AMBIGUOUS('spec.ingress[0].from[0].ipBlock.cidr', '10.1.2.3/8', '10.0.0.0/8', '10.1.2.3/32'),
    AMBIGUOUS('spec.ingress[0].from[0].ipBlock.except[0]', '10.2.3.4/16', '10.2.0.0/16', '10.2.3.4/32'),
    'spec.ingress[0].from[1].ipBlock.cidr: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format ("2001:db8::/64")',
    AMBIGUOUS('spec.egress[0].to[0].ipBlock.cidr', '2001:db8::1/64', '2001:db8::/64', '2001:db8::1/128'),
  ],
};

describe('warnings about builtin kinds', () => {
  for (const object of OBJECTS) {
    const { name = '' } = object.metadata;

    it(`of ${object.kind} ${name} are those of API servers`, async () => {
      const cluster = await EmbeddedCluster.open();
      try {
        const warnings: string[] = [];
        const type = knownKind(object.apiVersion, object.kind);
        const placed = { ...object, metadata: { ...object.metadata, namespace: 'default' } };
        const options = { onWarning: (text: string) => warnings.push(text) };
        await cluster.admin.create(type, placed, options);
        assert.deepEqual(warnings, EXPECTED[name]);
      } finally {
        await cluster.close();
      }
    });
  }
});
