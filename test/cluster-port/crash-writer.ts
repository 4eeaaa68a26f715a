// Writes into the file of an embedded cluster until it is killed. Prints each response immediately.
//   node crash-writer.ts FILE
import { writeSync } from 'node:fs';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { CONFIG_MAPS } from './resource-types.ts';

/** Few objects, so that each is created, changed and deleted repeatedly. */
const NAMES = 40;

const cluster = await EmbeddedCluster.open({ file: process.argv[2] ?? '' });
for (let count = cluster.revision; ; count++) {
  const name = `object-${Math.floor(Math.random() * NAMES)}`;
  const key = { namespace: 'default', name };
  const exists = cluster.state.get(CONFIG_MAPS, 'default', name) !== undefined;
  // Long enough for several pages, and the same twice: a torn object would differ.
  const text = String(count).repeat(1 + Math.floor(Math.random() * 2_000));
  const data = { text, copy: text };
  if (!exists) {
    const created = await cluster.admin.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: key,
      data,
    });
    acknowledge(name, created.metadata.resourceVersion, text);
  } else if (Math.random() < 0.2) {
    await cluster.admin.delete(CONFIG_MAPS, key);
    acknowledge(name, String(cluster.revision), undefined);
  } else {
    const patch = { type: 'merge', body: { data } } as const;
    const changed = await cluster.admin.patch(CONFIG_MAPS, key, patch);
    acknowledge(name, changed.metadata.resourceVersion, text);
  }
}

function acknowledge(name: string, version: string | undefined, text: string | undefined): void {
  writeSync(1, `${JSON.stringify({ name, version: Number(version), text })}\n`);
}
