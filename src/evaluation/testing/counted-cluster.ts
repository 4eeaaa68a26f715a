import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ClusterError } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import type { ResourceType } from '../../resources/index.ts';

/** An in-memory cluster that counts requests and can be made unavailable. */
export class CountedCluster implements AsyncDisposable {
  /** Neither counted nor unavailable. */
  readonly admin: Cluster;
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'watch' | 'discovery'>;
  /** Such as `get namespaces`. */
  readonly requests: string[] = [];
  isDown = false;
  readonly #embedded: EmbeddedCluster;

  private constructor(embedded: EmbeddedCluster) {
    this.#embedded = embedded;
    const { admin } = embedded;
    this.admin = admin;
    this.cluster = {
      get: async (type, ...rest) => await this.#counted('get', type, () => admin.get(type, ...rest)),
      list: async (type, ...rest) => await this.#counted('list', type, () => admin.list(type, ...rest)),
      watch: (type, ...rest) => admin.watch(type, ...rest),
      discovery: admin.discovery,
    };
  }

  static async open(): Promise<CountedCluster> {
    return new CountedCluster(await EmbeddedCluster.open());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#embedded.close();
  }

  #counted<T>(verb: string, { resource }: ResourceType, request: () => Promise<T>): Promise<T> {
    this.requests.push(`${verb} ${resource}`);
    return this.isDown ? Promise.reject(new ClusterError('unreachable', 'the API server is down')) : request();
  }
}
