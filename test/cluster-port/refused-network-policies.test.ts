// What `portcullis netpol` refuses is what API servers refuse, field by field.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalsOf } from '../../src/cli/netpol/policy-refusals.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { embeddedTarget, realTarget } from './kubectl-target.ts';

const block = (cidr: string, ...except: readonly string[]) => ({ egress: [{ to: [{ ipBlock: { cidr, except } }] }] });
const ports = (...entries: readonly object[]) => ({ ingress: [{ ports: entries }] });
const peer = (one: object) => ({ ingress: [{ from: [one] }] });
const expression = (one: object) => peer({ podSelector: { matchExpressions: [one] } });

/** By what is wrong. */
const SPECS: Readonly<Record<string, object>> = {
  'a misspelled type': { policyTypes: ['Ingres'] },
  'a type in lower case': { policyTypes: ['egress'] },
  'three types': { policyTypes: ['Ingress', 'Egress', 'Ingress'] },
  'an exception outside the block': block('10.0.0.0/8', '192.168.0.0/16'),
  'an exception of the whole block': block('10.0.0.0/8', '10.0.0.0/8'),
  'an exception of another family': block('10.0.0.0/8', 'fd00::/64'),
  'an exception without a prefix': block('10.0.0.0/8', '10.1.2.3'),
  'a prefix that is too long': block('10.0.0.0/33'),
  'an address without a prefix': block('10.0.0.1'),
  'no CIDR': peer({ ipBlock: { except: ['10.0.0.0/16'] } }),
  'a block beside a selector': peer({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }),
  'an empty peer': peer({}),
  'a protocol in lower case': ports({ protocol: 'tcp', port: 80 }),
  'port 0': ports({ port: 0 }),
  'a port that is too large': ports({ port: 70_000 }),
  'a quoted port': ports({ port: '443' }),
  'a name that is too long': ports({ port: 'averyveryverylongname' }),
  'an end before the port': ports({ port: 443, endPort: 400 }),
  'an end of a name': ports({ port: 'web', endPort: 9000 }),
  'an end without a port': ports({ endPort: 9000 }),
  'a value that is no label': peer({ podSelector: { matchLabels: { app: 'a b' } } }),
  'an operator that does not exist': expression({ key: 'a', operator: 'Equals', values: ['b'] }),
  'In without values': expression({ key: 'a', operator: 'In', values: [] }),
  'Exists with values': expression({ key: 'a', operator: 'Exists', values: ['b'] }),
  'a field that does not exist': { egress: [{ toPorts: [{ port: 443 }] }] },
  'a field in the wrong place': peer({ ipBlock: { cidr: '10.0.0.0/8' }, except: ['10.1.0.0/16'] }),
  'a text in place of a list': { ingress: 'all' },
  'a fraction': ports({ port: 80.5 }),
};

function policy(spec: object): KubernetesObject {
  const metadata = { name: 'web', namespace: 'default' };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec: { podSelector: {}, ...spec } };
}

for (const [where, start] of [
  ['a kube-apiserver', realTarget],
  ['the gateway', embeddedTarget],
] as const) {
  describe(`NetworkPolicies that netpol refuses, on ${where}`, { skip: skipWithoutCluster() }, () => {
    it('are refused because of the same fields', async () => {
      await using target = await start();
      const create = async (spec: object) => {
        const args = ['create', '--dry-run=server', '--validate=strict', '-f', '-'];
        return await target.run({ args, stdin: JSON.stringify(policy(spec)) });
      };
      const accepted = await create({});
      assert.equal(accepted.code, 0, accepted.stderr);
      assert.deepEqual(refusalsOf(policy({}), 'default'), []);
      for (const [what, spec] of Object.entries(SPECS)) {
        const { code, stderr } = await create(spec);
        assert.equal(code, 1, what);
        const [refusal] = refusalsOf(policy(spec), 'default');
        const field = refusal?.path.replaceAll(/\[\d+\]/g, '') ?? assert.fail(what);
        const said = stderr.replaceAll(/\[\d+\]/g, '');
        assert.ok(said.includes(field), `${what}: ${field} is not in ${said}`);
      }
    });
  });
}
