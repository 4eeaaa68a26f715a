// An embedded cluster with the product's namespace, for tests of Secrets.
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_USER, EmbeddedCluster } from '../../../apiserver/index.ts';
import { type Cluster, unlessGone } from '../../../cluster/index.ts';
import { knownKind } from '../../../resources/index.ts';
import { dataOf, type Secret, SECRETS } from '../secret.ts';

const NAMESPACES = knownKind('v1', 'Namespace');

export class SecretsScene implements AsyncDisposable {
  readonly namespace = 'portcullis';
  readonly cluster: Cluster;
  readonly #embedded: EmbeddedCluster;

  private constructor(embedded: EmbeddedCluster) {
    this.#embedded = embedded;
    this.cluster = embedded.as(ADMIN_USER);
  }

  static async open(): Promise<SecretsScene> {
    const scene = new SecretsScene(await EmbeddedCluster.open());
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: scene.namespace } };
    await scene.cluster.create(NAMESPACES, namespace);
    return scene;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#embedded.close();
  }

  get(name: string): Promise<Secret | undefined> {
    return unlessGone(this.cluster.get(SECRETS, { namespace: this.namespace, name }));
  }

  async texts(name: string): Promise<Readonly<Record<string, string | undefined>>> {
    return dataOf((await this.get(name)) ?? { apiVersion: 'v1', kind: 'Secret', metadata: {} });
  }

  /** Creates a Secret, or replaces texts of an existing one. */
  async put(name: string, texts: Readonly<Record<string, string>>, metadata: object = {}): Promise<Secret> {
    const existing = await this.get(name);
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    if (existing === undefined) {
      const object = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: this.namespace, name, ...metadata } };
      return this.cluster.create(SECRETS, { ...object, data });
    }
    return this.cluster.update(SECRETS, {
      ...existing,
      metadata: { ...existing.metadata, ...metadata },
      data: { ...(existing.data as object), ...data },
    });
  }

  async delete(name: string): Promise<void> {
    await this.cluster.delete(SECRETS, { namespace: this.namespace, name });
  }
}

/** Waits until a condition holds; a test that waits in vain ends by its own timeout. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}
