// `portcullis netpol check` of many files against the whole catalogue.
//   node bench/netpol.ts [policies]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  analysePolicy,
  builtinCatalogue,
  judgePolicy,
  NetworkPolicySet,
  ProviderSupport,
  readNetworkPolicy,
} from '../src/engine/network-policy/index.ts';
import { samplePolicy } from './sample-network-policy.ts';

const COMMAND = fileURLToPath(new URL('../bin/portcullis.mjs', import.meta.url));
const [files = 10_000] = process.argv.slice(2).map(Number);

function row(name: string, ms: number): void {
  console.log(`  ${name.padEnd(46)} ${(ms / 1000).toFixed(2).padStart(6)} s`);
}

const folder = mkdtempSync(join(tmpdir(), 'portcullis-netpol-'));
try {
  const objects = Array.from({ length: files }, (_, index) => samplePolicy(index));
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
  const set = new NetworkPolicySet(policies);
  const redundant = policies.filter((one) => set.redundancy(one) !== undefined).length;
  row(`what others allow already (${redundant} redundant)`, performance.now() - start);
  start = performance.now();
  const { status } = spawnSync(process.execPath, [COMMAND, 'netpol', 'check', '-f', folder], { stdio: 'ignore' });
  row(`portcullis netpol check -f FOLDER (exit ${status})`, performance.now() - start);
} finally {
  rmSync(folder, { recursive: true });
}
