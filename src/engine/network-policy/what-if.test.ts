import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Catalogue } from './catalogue.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { parseCatalogue } from './read-catalogue.ts';
import { ProviderSupport } from './support.ts';
import type { ProviderInstance } from './support.ts';
import { analysePolicy, judgePolicy } from './verdict.ts';
import { compareVerdicts } from './what-if.ts';

/** Egress to a block. */
function changes(
  cidr: string,
  from: ProviderInstance,
  to: ProviderInstance,
  catalogue = builtinCatalogue(),
): readonly string[] {
  const policy = readNetworkPolicy({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ to: [{ ipBlock: { cidr } }] }] },
  });
  const [before, after] = [from, to].map((instance) => {
    const provider = catalogue.find(instance.name) ?? assert.fail(instance.name);
    return judgePolicy(analysePolicy(policy), new ProviderSupport(provider, instance));
  });
  assert.ok(before && after);
  return compareVerdicts(before, after)
    .map(({ change, type }) => `${change} ${type}`)
    .toSorted();
}

const cilium = (version: string, settings: Readonly<Record<string, string>> = {}) => ({
  name: 'cilium',
  version,
  settings: { 'enable-policy': 'default', 'enable-k8s-networkpolicy': 'true', ...settings },
});
const CALICO = { name: 'calico', version: '3.28.0' };

describe('a change to a provider whose setting is not known', () => {
  for (const cidr of ['0.0.0.0/0', '10.0.0.0/8', '::/0']) {
    it(`is judged by the default of the setting: egress to ${cidr} may break from Calico to Cilium`, () => {
      const ofBlocks = changes(cidr, CALICO, cilium('1.20.0')).filter((text) => text.includes('IPBlock'));
      assert.deepEqual(ofBlocks, ['MayBreak IPBlockOfNodes', 'MayBreak IPBlockOfPods']);
    });

    it(`fixes nothing by itself: ${cidr} from Cilium 1.19 to 1.20`, () => {
      assert.deepEqual(changes(cidr, cilium('1.19.0'), cilium('1.20.0')), []);
    });
  }

  it('fixes what the setting turns on, and breaks what it turns off', () => {
    const on = cilium('1.20.0', { 'policy-cidr-match-mode': 'pods,nodes' });
    const ofNodes = (texts: readonly string[]) => texts.filter((text) => text.endsWith('IPBlockOfNodes'));
    assert.deepEqual(ofNodes(changes('10.0.0.0/8', cilium('1.20.0'), on)), ['Fixes IPBlockOfNodes']);
    assert.deepEqual(ofNodes(changes('10.0.0.0/8', on, cilium('1.20.0'))), ['MayBreak IPBlockOfNodes']);
  });
});

describe('a change to what nobody has examined', () => {
  const text = `
name: mine
controllerName: example.com/mine
checked: '2026-11-01'
latest: 2.0.0
features:
  Enforcement: &all
    - {versions: '*', support: Supported, evidence: Inferred}
  Egress: *all
  IPBlockOfPods: *all
  IPBlockOfNodes: *all
  IPBlock:
    - {versions: '<1.0.0', support: Unsupported, effect: FailOpen, evidence: Inferred}
    - {versions: '>=1.0.0', support: Unknown, evidence: Inferred}
`;
  const empty = new Catalogue([]);
  const catalogue = empty.extended(parseCatalogue(text, 'mine.yaml', empty));
  const mine = (version: string) => ({ name: 'mine', version });

  it('may fix what did not work, but is no fix', () => {
    assert.deepEqual(changes('10.0.0.0/8', mine('0.9.0'), mine('1.0.0'), catalogue), ['MayFix IPBlock']);
  });

  it('may break what was not known either', () => {
    assert.deepEqual(changes('10.0.0.0/8', mine('1.0.0'), mine('1.1.0'), catalogue), ['MayBreak IPBlock']);
    assert.deepEqual(changes('10.0.0.0/8', mine('1.1.0'), mine('1.1.0'), catalogue), []);
  });
});
