// Times and memory of the embedded cluster: writes in memory and in SQLite, the start with 10,000 objects, events for watchers,
// and 100 clusters in one process.
//   node bench/embedded.ts [objects]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EmbeddedCluster } from '../src/apiserver/index.ts';
import type { EmbeddedClusterOptions } from '../src/apiserver/index.ts';
import { kubernetesKind } from '../src/resources/index.ts';
import type { KubernetesObject, ResourceType } from '../src/resources/index.ts';

const CLUSTERS = 100;
const WATCHERS = 10;

if (process.argv[2] === 'fleet') {
  await fleet();
} else {
  await main(Number(process.argv[2] ?? 10_000));
}

async function main(objects: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  const file = join(folder, 'cluster.db');
  try {
    console.log(`embedded cluster: ${objects} config maps of 5 KB, load average ${loadavg()[0]?.toFixed(1)}`);
    console.log('writes per second               create    update    patch');
    await writes('in memory', {}, objects);
    await writes('SQLite', { file }, objects);
    await writes('SQLite, durability full', { file: join(folder, 'full.db'), durability: 'full' }, objects / 10);
    await start(file, objects);
    await watching(objects * 2);
    spawnSync(process.execPath, ['--expose-gc', fileURLToPath(import.meta.url), 'fleet'], { stdio: 'inherit' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function writes(title: string, options: EmbeddedClusterOptions, objects: number): Promise<void> {
  await using cluster = await EmbeddedCluster.open(options);
  const { admin } = cluster;
  const creates = await rate(objects, (index) => admin.create(configMaps(), configMap(index)));
  const updates = await rate(objects, (index) => admin.update(configMaps(), configMap(index, 'b')));
  const patches = await rate(objects, (index) =>
    admin.patch(
      configMaps(),
      { namespace: 'default', name: `object-${index}` },
      { type: 'merge', body: { metadata: { labels: { index: String(index) } } } },
    ),
  );
  console.log(`  ${title.padEnd(26)}${[creates, updates, patches].map((one) => whole(one).padStart(10)).join('')}`);
}

async function start(file: string, objects: number): Promise<void> {
  const began = performance.now();
  await using cluster = await EmbeddedCluster.open({ file });
  const milliseconds = performance.now() - began;
  const { items } = await cluster.admin.list(configMaps());
  if (items.length !== objects) {
    throw new Error(`expected ${objects} objects, got ${items.length}`);
  }
  console.log(`start with ${objects} objects: ${whole(milliseconds)} ms`);
}

async function watching(events: number): Promise<void> {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  const resourceVersion = String(cluster.revision);
  const watchers = Array.from({ length: WATCHERS }, async () => {
    let seen = 0;
    for await (const _event of admin.watch(configMaps(), { namespace: 'default', resourceVersion })) {
      seen += 1;
      if (seen === events) {
        return;
      }
    }
  });
  const began = performance.now();
  for (let index = 0; index < events; index++) {
    await admin.create(configMaps(), configMap(index));
  }
  await Promise.all(watchers);
  const perSecond = events / ((performance.now() - began) / 1000);
  console.log(
    `watching: ${whole(perSecond)} creates a second told to ${WATCHERS} watchers, ${whole(perSecond * WATCHERS)} events a second`,
  );
}

/** Runs in its own process, so that only the memory of the clusters is measured. */
async function fleet(): Promise<void> {
  const before = process.memoryUsage().rss;
  const clusters: EmbeddedCluster[] = [];
  for (let index = 0; index < CLUSTERS; index++) {
    clusters.push(await EmbeddedCluster.open());
  }
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  console.log(
    `${CLUSTERS} clusters, idle: ${mebibytes(rss)} MiB resident, ${mebibytes(rss - before)} MiB of it theirs, heap ${mebibytes(heapUsed)} MiB`,
  );
  for (const cluster of clusters) {
    await cluster.close();
  }
}

async function rate(count: number, write: (index: number) => Promise<unknown>): Promise<number> {
  const began = performance.now();
  for (let index = 0; index < count; index++) {
    await write(index);
  }
  return count / ((performance.now() - began) / 1000);
}

function configMaps(): ResourceType {
  const type = kubernetesKind('v1', 'ConfigMap');
  if (type === undefined) {
    throw new Error('there are no config maps');
  }
  return type;
}

function configMap(index: number, letter = 'a'): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: `object-${index}`, labels: { app: 'bench' } },
    data: { text: letter.repeat(4_600), index: String(index) },
  };
}

function whole(value: number): string {
  return Math.round(value).toString();
}

function mebibytes(bytes: number): string {
  return whole(bytes / 1024 ** 2);
}
