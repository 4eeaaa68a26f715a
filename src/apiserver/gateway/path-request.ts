// Non-resource requests: health, version, discovery, OpenAPI.
import type { IncomingMessage } from 'node:http';
import { ApiError, EMBEDDED_BUILD } from '../../cluster/index.ts';
import { kubernetesVersion } from '../../resources/index.ts';
import { notServed } from '../not-served.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { GatewayAnswer } from './answer.ts';
import { aggregatedContentType, aggregatedVersion, DiscoveryDocuments, discoveryPath } from './discovery.ts';
import { mediaRanges } from './negotiation.ts';
import { OpenApiDocuments } from '../openapi/openapi.ts';
import type { OpenApiDocument } from '../openapi/openapi.ts';
import { methodNotAllowed } from './resource-request.ts';

/** The response of `/version` (`version.Info` of apimachinery). */
interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly [field: string]: string;
}

/** The media type of protobuf that kubectl requests for `/openapi/v2`. */
const SWAGGER_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

/** The same type in responses, without the `@`, which a valid media type cannot have. */
const SWAGGER_PROTOBUF_ANSWER = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

/** Answers non-resource requests. */
export class PathRequests {
  readonly #definitions: () => readonly ResourceDefinition[];
  readonly #isReady: () => boolean;
  readonly #openApi = new OpenApiDocuments();
  #discovery: { readonly of: readonly ResourceDefinition[]; readonly documents: DiscoveryDocuments } | undefined;

  constructor(definitions: () => readonly ResourceDefinition[], isReady: () => boolean) {
    this.#definitions = definitions;
    this.#isReady = isReady;
  }

  /**
   * The response to a GET of a path.
   * @throws ApiError 404 and 405.
   */
  answer(path: string, query: URLSearchParams, request: IncomingMessage): GatewayAnswer {
    const answer = this.#find(path, query, request);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw methodNotAllowed();
    }
    return answer;
  }

  #find(path: string, query: URLSearchParams, request: IncomingMessage): GatewayAnswer {
    if (path === '/') {
      return { status: 200, body: { paths: this.#paths() } };
    }
    if (path === '/version') {
      return { status: 200, contentType: 'application/json', body: JSON.stringify(versionInfo(), null, 2) };
    }
    const [, root = '', ...rest] = path.split('/');
    if (HEALTH_PATHS.has(`/${root}`) && (rest.length === 0 || (rest.length === 1 && rest[0] === 'ping'))) {
      return this.#health(root, query.has('verbose'));
    }
    if (path === '/openapi/v2') {
      if (mediaRanges(request.headers.accept)[0]?.type === SWAGGER_PROTOBUF) {
        const body = this.#openApi.emptySwagger(versionInfo().gitVersion);
        return { status: 200, body, contentType: SWAGGER_PROTOBUF_ANSWER };
      }
      const document = this.#openApi.swagger(this.#definitions(), versionInfo().gitVersion);
      return documentAnswer(document, query, request);
    }
    if (root === 'openapi') {
      return this.#openApiV3(path, query, request);
    }
    return this.#discover(path, request);
  }

  #paths(): string[] {
    const roots = this.#documents()
      .groupVersions()
      .map((version) => (version.includes('/') ? `/apis/${version}` : `/api/${version}`));
    const groups = roots
      .filter((root) => root.startsWith('/apis/'))
      .map((root) => root.slice(0, root.lastIndexOf('/')));
    const fixed = ['/api', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version'];
    return [...new Set([...fixed, ...groups, ...roots])].toSorted();
  }

  #health(name: string, isVerbose: boolean): GatewayAnswer {
    const isReady = name === 'livez' || this.#isReady();
    const status = isReady ? 200 : 500;
    const checks = `[+]ping ok\n${isReady ? '[+]' : '[-]'}cluster ${isReady ? 'ok' : 'failed: stopping'}\n`;
    const verbose = `${checks}${name} check ${isReady ? 'passed' : 'failed'}\n`;
    return { status, body: isVerbose || !isReady ? verbose : 'ok' };
  }

  #openApiV3(path: string, query: URLSearchParams, request: IncomingMessage): GatewayAnswer {
    const definitions = this.#definitions();
    if (path === '/openapi/v3') {
      return documentAnswer(this.#openApi.index(definitions), query, request);
    }
    const document = this.#openApi.groupVersion(definitions, path.slice('/openapi/v3/'.length));
    if (document === undefined) {
      throw notServed();
    }
    return documentAnswer(document, query, request);
  }

  #discover(path: string, request: IncomingMessage): GatewayAnswer {
    const target = discoveryPath(path);
    const documents = this.#documents();
    if (target === 'core' || target === 'groups') {
      const version = aggregatedVersion(request.headers.accept);
      if (version !== undefined) {
        return {
          status: 200,
          contentType: aggregatedContentType(version),
          headers: { vary: 'Accept' },
          body: JSON.stringify(documents.aggregated(target === 'core', version)),
        };
      }
      const address = request.headers.host ?? '';
      return { status: 200, body: target === 'core' ? documents.coreVersions(address) : documents.groupList() };
    }
    const found =
      target === undefined
        ? undefined
        : target.version === undefined
          ? documents.group(target.group)
          : documents.resourceList(target.group, target.version);
    if (found !== undefined) {
      return { status: 200, body: found };
    }
    if (target !== undefined && target.group === '') {
      throw notServed();
    }
    return pageNotFound();
  }

  #documents(): DiscoveryDocuments {
    const definitions = this.#definitions();
    if (this.#discovery?.of !== definitions) {
      this.#discovery = { of: definitions, documents: new DiscoveryDocuments(definitions) };
    }
    return this.#discovery.documents;
  }
}

function versionInfo(): VersionInfo {
  const version = kubernetesVersion();
  const [major = '', minor = ''] = version.slice(1).split('.');
  return {
    major,
    minor,
    gitVersion: `${version}${EMBEDDED_BUILD}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  };
}

/** The response for an unknown path: plain text, as in API servers. */
export function pageNotFound(): GatewayAnswer {
  return { status: 404, body: '404 page not found\n', headers: { 'x-content-type-options': 'nosniff' } };
}

/** The response with a cacheable document: 304 when the client has it. */
function documentAnswer(document: OpenApiDocument, query: URLSearchParams, request: IncomingMessage): GatewayAnswer {
  const { text, hash } = document;
  const etag = `"${hash}"`;
  const requestedHash = query.get('hash');
  const headers = {
    etag,
    vary: 'Accept',
    ...(requestedHash === hash ? { 'cache-control': 'public, immutable' } : {}),
  };
  const accept = request.headers.accept ?? '';
  if (accept.includes('protobuf') && !accept.includes('json') && !accept.includes('*/*')) {
    throw new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json', {});
  }
  if (request.headers['if-none-match'] === etag) {
    return { status: 304, body: '', contentType: 'application/json', headers };
  }
  return { status: 200, body: text, contentType: 'application/json', headers };
}
