import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

import { digestOf } from '../reference/digest.ts';
import type { ServerIdentity } from './test-authority.ts';
import { TestServer } from './test-server.ts';

const LAYER_TYPE = 'application/vnd.wasm.content.layer.v1+wasm';
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';

/** By `repository/manifests/tag-or-digest` and `repository/blobs/digest`. */
type Content = Map<string, { readonly bytes: Uint8Array; readonly type: string }>;

/** Answers a request in place of the registry if it returns true. */
type Interception = (request: IncomingMessage, response: ServerResponse) => boolean;

/** A registry whose content and misbehaviour a test decides. */
export class TestRegistry {
  readonly server: TestServer;
  /** Requests by path, without the query. */
  readonly paths: string[] = [];
  intercept: Interception = () => false;
  readonly #content: Content;

  private constructor(server: TestServer, content: Content) {
    this.server = server;
    this.#content = content;
  }

  static async start(identity?: ServerIdentity): Promise<TestRegistry> {
    const content: Content = new Map();
    let registry: TestRegistry | undefined = undefined;
    const server = await TestServer.start((request, response) => registry?.answer(request, response), identity);
    registry = new TestRegistry(server, content);
    return registry;
  }

  get host(): string {
    return this.server.host;
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://registry').pathname;
    this.paths.push(path);
    if (this.intercept(request, response)) {
      return;
    }
    const place = path.replace(/^\/v2\//, '');
    if (request.method === 'POST' || request.method === 'PUT') {
      void this.#store(request, response, place);
      return;
    }
    const found = this.#content.get(place);
    if (found === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'no such thing' }] }));
      return;
    }
    response.writeHead(200, { 'content-type': found.type, 'content-length': found.bytes.length });
    response.end(request.method === 'HEAD' ? undefined : found.bytes);
  }

  /** Accepts a push, with an upload location whose query must come back as it is. */
  async #store(request: IncomingMessage, response: ServerResponse, place: string): Promise<void> {
    const bytes = await buffer(request);
    const [repository = ''] = place.split(/\/(?:blobs|manifests)\//);
    if (request.method === 'POST') {
      response.writeHead(202, { location: `/v2/${repository}/blobs/uploads/1?_state=a%2Bb~c` }).end();
      return;
    }
    if (place.includes('/manifests/')) {
      const { digest } = this.manifest(
        repository,
        place.split('/').at(-1) ?? '',
        bytes,
        request.headers['content-type'],
      );
      response.writeHead(201, { 'docker-content-digest': digest }).end();
      return;
    }
    const isWhole = request.url?.endsWith(`/uploads/1?_state=a%2Bb~c&digest=${encodeURIComponent(digestOf(bytes))}`);
    if (isWhole === true) {
      this.blob(repository, bytes);
    }
    response.writeHead(isWhole === true ? 201 : 400).end();
  }

  /** The stored bytes of `repository/manifests/tag-or-digest` or `repository/blobs/digest`. */
  stored(place: string): Uint8Array | undefined {
    return this.#content.get(place)?.bytes;
  }

  /** Stores a blob and returns its descriptor. */
  blob(repository: string, bytes: Uint8Array, mediaType = LAYER_TYPE): object {
    const digest = digestOf(bytes);
    this.#content.set(`${repository}/blobs/${digest}`, { bytes, type: 'application/octet-stream' });
    return { mediaType, digest, size: bytes.length };
  }

  /** Stores a manifest or index under its digest and a tag, and returns its descriptor. */
  manifest(repository: string, tag: string, content: object | Uint8Array, mediaType = MANIFEST_TYPE): Descriptor {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content));
    const digest = digestOf(bytes);
    for (const reference of [tag, digest]) {
      this.#content.set(`${repository}/manifests/${reference}`, { bytes, type: mediaType });
    }
    return { mediaType, digest, size: bytes.length };
  }

  /** Stores a module as Kubewarden does. */
  push(repository: string, tag: string, module: Uint8Array, layerType = LAYER_TYPE): Descriptor {
    const config = this.blob(repository, Buffer.from('{}'), 'application/vnd.wasm.config.v1+json');
    const layers = [this.blob(repository, module, layerType)];
    return this.manifest(repository, tag, { schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}
