// A real registry (https://distribution.github.io/distribution/) with TLS and a password, and what the tests store in it.
import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { digestOf } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../src/modules/sources/index.ts';
import { findRegistry } from '../cluster/binaries.ts';
import { freePorts } from '../cluster/free-ports.ts';
import { createLoopbackCertificate, type LoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { SupervisedProcess } from '../cluster/supervised-process.ts';
import { until } from '../server/harness.ts';
import { PASSWORD, USER } from './registry-user.ts';
import type { TokenService } from './token-service.ts';

/** The bcrypt hash of {@link PASSWORD}, of which Node has none. */
const PASSWORD_HASH = '$2b$04$0StecdWtiL1p.GXjyQmBcuHlRNPmoYIR4H52Ymlr9a/pTBAYCCDmy';

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface ManifestFields {
  readonly mediaType: string;
  readonly artifactType?: string;
  readonly config?: Descriptor;
  readonly layers?: readonly object[];
  readonly manifests?: readonly object[];
  readonly subject?: Descriptor;
}

/** A running registry. */
export class Registry implements AsyncDisposable {
  /** `localhost:<port>` */
  readonly host: string;
  readonly ca: string;
  /** A Docker config file with its password. */
  readonly dockerConfig: string;
  readonly #folder: string;
  readonly #start: () => SupervisedProcess;
  readonly #agent: Agent;
  readonly #tokens: TokenService | undefined;
  #process: SupervisedProcess;

  private constructor(
    folder: string,
    port: number,
    { cert }: LoopbackCertificate,
    start: () => SupervisedProcess,
    tokens: TokenService | undefined,
  ) {
    this.host = `localhost:${port}`;
    this.ca = cert;
    this.dockerConfig = join(folder, 'config.json');
    this.#folder = folder;
    this.#agent = new Agent({ ca: cert });
    this.#start = start;
    this.#tokens = tokens;
    this.#process = start();
  }

  /** Starts a registry that requires a password, or tokens of a service. */
  static async start({ tokens }: { readonly tokens?: TokenService } = {}): Promise<Registry> {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-registry-'));
    const [port = 0] = await freePorts(1);
    const certificate = await createLoopbackCertificate();
    const file = async (name: string, text: string): Promise<string> => {
      const path = join(folder, name);
      await writeFile(path, text);
      await chmod(path, 0o600);
      return path;
    };
    const config = {
      version: 0.1,
      log: { level: 'warn' },
      storage: { filesystem: { rootdirectory: join(folder, 'data') } },
      http: {
        addr: `127.0.0.1:${port}`,
        tls: { certificate: await file('tls.crt', certificate.cert), key: await file('tls.key', certificate.key) },
      },
      auth:
        tokens === undefined
          ? { htpasswd: { realm: 'test', path: await file('htpasswd', `${USER}:${PASSWORD_HASH}\n`) } }
          : {
              token: {
                realm: tokens.realm,
                service: tokens.service,
                issuer: tokens.issuer,
                rootcertbundle: await file('tokens.crt', tokens.ca),
              },
            },
    };
    const configFile = await file('registry.json', JSON.stringify(config));
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    await file('config.json', JSON.stringify({ auths: { [`localhost:${port}`]: { auth } } }));
    const program = findRegistry() ?? assert.fail('no registry: run "npm run cluster:build"');
    const logFile = join(folder, 'registry.log');
    const process = (): SupervisedProcess => new SupervisedProcess({ program, args: ['serve', configFile], logFile });
    const registry = new Registry(folder, port, certificate, process, tokens);
    await registry.#untilReady();
    return registry;
  }

  /** Sources that reach it, and proxies in front of it, with its password. */
  async sources(...places: readonly Pick<Registry, 'host' | 'ca'>[]): Promise<SourcesConfig> {
    const hosts = places.map(({ host }) => host);
    const dockerConfig = join(this.#folder, `${hosts.join('-').replaceAll(':', '-')}.json`);
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    await writeFile(dockerConfig, JSON.stringify({ auths: Object.fromEntries(hosts.map((host) => [host, { auth }])) }));
    const authorities = places.map(({ host, ca }) => [host, [{ type: 'Data' as const, data: ca }]] as const);
    return { ...DEFAULT_SOURCES, sourceAuthorities: Object.fromEntries(authorities), dockerConfig };
  }

  /** Stops answering, until {@link resume}. */
  async stop(): Promise<void> {
    await this.#process.stop();
  }

  async resume(): Promise<void> {
    this.#process = this.#start();
    await this.#untilReady();
  }

  /** Stores a module as Kubewarden does, and returns the digest of its manifest. */
  async push(repository: string, tag: string, module: Uint8Array): Promise<string> {
    const config = await this.blob(repository, Buffer.from('{}'), 'application/vnd.wasm.config.v1+json');
    const layer = await this.blob(repository, module, 'application/vnd.wasm.content.layer.v1+wasm');
    return (await this.manifest(repository, tag, { mediaType: MANIFEST_TYPE, config, layers: [layer] })).digest;
  }

  /** Stores a container image for some platforms, each with a configuration, and an index of them. Returns all digests. */
  async pushImage(
    repository: string,
    tag: string,
    configs: Readonly<Record<string, object>>,
  ): Promise<{ readonly index: string; readonly images: Readonly<Record<string, string>> }> {
    const images: Record<string, string> = {};
    const manifests: object[] = [];
    for (const [architecture, content] of Object.entries(configs)) {
      const type = 'application/vnd.oci.image.config.v1+json';
      const config = await this.blob(repository, Buffer.from(JSON.stringify(content)), type);
      const body = { mediaType: MANIFEST_TYPE, config, layers: [] };
      const image = await this.manifest(repository, `${tag}-${architecture}`, body);
      images[architecture] = image.digest;
      manifests.push({ ...image, platform: { os: 'linux', architecture } });
    }
    const { digest } = await this.manifest(repository, tag, { mediaType: INDEX_TYPE, manifests });
    return { index: digest, images };
  }

  /** Stores a manifest or an index. @param tag default: none, it is named by its digest */
  async manifest(repository: string, tag: string | undefined, content: ManifestFields): Promise<Descriptor> {
    const { mediaType } = content;
    const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, ...content }));
    const digest = digestOf(bytes);
    const path = `/v2/${repository}/manifests/${tag ?? digest}`;
    const { statusCode } = await this.request('PUT', path, { 'content-type': mediaType }, bytes);
    assert.equal(statusCode, 201);
    return { mediaType, digest, size: bytes.length };
  }

  /** Stores a blob. */
  async blob(repository: string, bytes: Uint8Array, mediaType: string): Promise<Descriptor> {
    const digest = digestOf(bytes);
    const { headers } = await this.request('POST', `/v2/${repository}/blobs/uploads/`);
    const target = new URL(headers.location ?? '', `https://${this.host}`);
    target.searchParams.set('digest', digest);
    const type = { 'content-type': 'application/octet-stream' };
    const { statusCode } = await this.request('PUT', `${target.pathname}${target.search}`, type, bytes);
    assert.equal(statusCode, 201);
    return { mediaType, digest, size: bytes.length };
  }

  /** Sends a request with the password, and reads the answer. */
  async request(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body: Uint8Array = Buffer.of(),
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    httpsRequest(`https://${this.host}${path}`, {
      method,
      agent: this.#agent,
      headers: { 'content-length': body.length, authorization: this.#authorization(path), ...headers },
    })
      .once('response', resolve)
      .once('error', reject)
      .end(body);
    const response = await promise;
    await buffer(response);
    return response;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#process.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #authorization(path: string): string {
    const repository = /^\/v2\/(.+)\/(?:manifests|blobs)\//.exec(path)?.[1];
    return this.#tokens === undefined
      ? `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`
      : `Bearer ${this.#tokens.token(repository === undefined ? '' : `repository:${repository}:pull,push`)}`;
  }

  async #untilReady(): Promise<void> {
    await until(async () => {
      const status = await this.request('GET', '/v2/').then(
        ({ statusCode }) => statusCode,
        () => undefined,
      );
      return status === 200;
    });
  }
}
