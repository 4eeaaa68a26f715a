// `portcullis netpol check` of many files against the whole catalogue, and the statuses of as many NetworkPolicies.
//   node bench/netpol.ts [policies] [--embedded]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  analysePolicy,
  builtinCatalogue,
  judgePolicy,
  PolicySet,
  ProviderSupport,
  readNetworkPolicy,
} from '../src/engine/network-policy/index.ts';
import type { JsonObject } from '../src/values/index.ts';
import type { KubernetesObject } from '../src/resources/index.ts';
import { benchStatuses } from './netpol-status.ts';

const COMMAND = fileURLToPath(new URL('../bin/portcullis.mjs', import.meta.url));
const isEmbedded = process.argv.includes('--embedded');
const [files = 10_000] = process.argv
  .slice(2)
  .filter((one) => !one.startsWith('--'))
  .map(Number);

/** A policy with most of the features, in one of 100 namespaces. */
function policy(index: number): JsonObject & KubernetesObject {
  const block = `10.${index % 250}.0.0/16`;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: `policy-${index}`, namespace: `namespace-${index % 100}` },
    spec: {
      podSelector: { matchLabels: { app: `app-${index}` } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { team: `team-${index % 7}` } },
              podSelector: { matchLabels: { role: 'client' } },
            },
            { ipBlock: { cidr: block, except: [`10.${index % 250}.1.0/24`] } },
          ],
          ports: [{ port: 80 }, { port: 'web' }, { protocol: 'UDP', port: 30_000, endPort: 32_000 }],
        },
      ],
      egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }], ports: [{ port: 443 }] }],
    },
  };
}

function row(name: string, ms: number): void {
  console.log(`  ${name.padEnd(46)} ${(ms / 1000).toFixed(2).padStart(6)} s`);
}

const folder = mkdtempSync(join(tmpdir(), 'portcullis-netpol-'));
try {
  const objects = Array.from({ length: files }, (_, index) => policy(index));
  objects.forEach((object, index) =>
    writeFileSync(join(folder, `${index}.yaml`), JSON.stringify(object, undefined, 1)),
  );
  const providers = builtinCatalogue().providers.map((provider) => {
    const { name, latest } = provider;
    return new ProviderSupport(provider, latest === undefined ? { name } : { name, version: latest });
  });
  console.log(`netpol: ${files} policies, ${providers.length} providers, load average ${loadavg()[0]?.toFixed(1)}`);

  let start = performance.now();
  const policies = objects.map((object) => readNetworkPolicy(object));
  row('read and set defaults', performance.now() - start);
  start = performance.now();
  const accepted = policies.flatMap((one) => {
    const analysed = analysePolicy(one);
    return providers.filter((support) => judgePolicy(analysed, support).accepted === 'True');
  }).length;
  row(`verdicts (${accepted} accepted)`, performance.now() - start);
  start = performance.now();
  const set = new PolicySet(policies);
  const redundant = policies.filter((one) => set.redundancy(one) !== undefined).length;
  row(`what others allow already (${redundant} redundant)`, performance.now() - start);
  start = performance.now();
  const { status } = spawnSync(process.execPath, [COMMAND, 'netpol', 'check', '-f', folder], { stdio: 'ignore' });
  row(`portcullis netpol check -f FOLDER (exit ${status})`, performance.now() - start);
} finally {
  rmSync(folder, { recursive: true });
}
await benchStatuses(
  Array.from({ length: files }, (_, index) => policy(index)),
  ...(isEmbedded ? [false] : []),
);
