import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import { EmbeddedCluster } from '../../index.ts';
import { servedKind } from '../../testing/served-kind.ts';
import { type KubernetesObject, knownKind } from '../../../resources/index.ts';

const corpus = (name: string): string =>
  readFileSync(new URL(`../../../../test/e2e/builtin-kinds/${name}`, import.meta.url), 'utf8');

/** Objects that test/e2e/builtin-kinds.full.test.ts writes to a real API server as well, and what that says. */
const OBJECTS = loadAll(corpus('warned.yaml')) as readonly KubernetesObject[];
const EXPECTED = JSON.parse(corpus('warnings.json')) as Readonly<Record<string, readonly string[]>>;

describe('warnings about builtin kinds', () => {
  let cluster: EmbeddedCluster;
  before(async () => {
    cluster = await EmbeddedCluster.open();
  });
  after(() => cluster.close());

  for (const object of OBJECTS) {
    const title = `${object.kind} ${object.metadata.name ?? ''}`;

    it(`of ${title} are those of API servers`, async () => {
      const warnings: string[] = [];
      const type = knownKind(object.apiVersion, object.kind);
      const metadata = { ...object.metadata, ...(type.namespaced ? { namespace: 'default' } : {}) };
      const options = { onWarning: (text: string) => warnings.push(text) };
      await cluster.admin.create(type, { ...object, metadata }, options);
      const { deprecation } = servedKind(object.apiVersion, object.kind) ?? {};
      assert.deepEqual([...(deprecation === undefined ? [] : [deprecation]), ...warnings], EXPECTED[title]);
    });
  }
});
