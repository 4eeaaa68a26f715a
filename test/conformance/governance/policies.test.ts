import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { templateReports } from '../../../src/cli/governance/dryrun/dryrun-report.ts';
import { EmbeddedCluster } from '../../../src/apiserver/index.ts';
import { parseYaml } from '../../../src/values/yaml/index.ts';
import {
  customResourceDefinition,
  GOVERNANCE_KINDS,
  type JsonObject,
  keyOf,
  kubernetesKind,
  type KubernetesObject,
} from '../../../src/resources/index.ts';
import { evaluated } from './dryrun-cases.ts';

interface PublishedCase {
  readonly name: string;
  /** A file of the collection that has the same shape. */
  readonly upstream: string;
  readonly manifests: readonly (KubernetesObject & { readonly spec: JsonObject })[];
  readonly objects: readonly KubernetesObject[];
  /** By the name of the template. */
  readonly messages: Readonly<Record<string, string>>;
}

const [CASES] = parseYaml(readFileSync(new URL('policies.yaml', import.meta.url), 'utf8')) as [
  readonly PublishedCase[],
];

describe('published policies', { concurrency: 2 }, () => {
  let cluster: EmbeddedCluster;
  before(async () => {
    cluster = await EmbeddedCluster.open();
    const definitions = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') ?? assert.fail();
    for (const kind of GOVERNANCE_KINDS) {
      await cluster.admin.create(definitions, customResourceDefinition(kind));
    }
    const namespaces = kubernetesKind('v1', 'Namespace') ?? assert.fail();
    await cluster.admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'policies' } });
  });
  after(() => cluster.close());

  for (const { name, manifests, objects, messages } of CASES) {
    it(`store unchanged: ${name}`, async () => {
      for (const manifest of manifests) {
        const type = GOVERNANCE_KINDS.find(({ kind }) => kind === manifest.kind) ?? assert.fail(manifest.kind);
        await cluster.admin.create(type, manifest, { fieldValidation: 'Strict' });
        const stored = (await cluster.admin.get(type, keyOf(manifest))) as typeof manifest;
        assert.deepEqual(
          [stored.spec, stored.metadata.annotations, stored.metadata.labels],
          [manifest.spec, manifest.metadata.annotations, manifest.metadata.labels],
        );
      }
    });

    it(`evaluate, or say what is missing: ${name}`, async () => {
      const reports = templateReports(await evaluated(manifests, objects));
      assert.deepEqual(Object.fromEntries(reports.map((report) => [report.name, report.message])), messages);
    });
  }
});
