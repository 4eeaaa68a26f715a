// The token service of a registry (https://distribution.github.io/distribution/spec/auth/token/): issues JSON Web Tokens that the
// registry checks, and other answers on demand.
import { randomUUID, sign, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createLoopbackCertificate, type LoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { PASSWORD, USER } from './registry-user.ts';

export const REFRESH_TOKEN = 'a refresh token';
/** A token lives as long as those of Docker Hub. Seconds. */
const LIFETIME_S = 300;

/** A request for a token. */
export interface TokenRequest {
  readonly method: string;
  readonly scope: string;
  readonly service: string;
  readonly credentials: 'none' | 'password' | 'refresh-token' | 'wrong';
}

/** Fields of a token that differ from those of a good one. */
export interface TokenChange {
  readonly audience?: string;
  readonly issuer?: string;
  readonly repository?: string;
  /** Seconds. */
  readonly lifetime?: number;
  /** Signs with a key that the registry does not know. */
  readonly isForged?: boolean;
}

export class TokenService implements AsyncDisposable {
  readonly service = 'registry of the test';
  readonly issuer = 'token service of the test';
  /** Certificate of the service, and of the key that signs its tokens. PEM. */
  readonly ca: string;
  readonly requests: TokenRequest[] = [];
  /** What is wrong with the tokens. */
  change: TokenChange = {};
  /** Answers instead of the service. */
  answer: ((response: ServerResponse) => void) | undefined;
  readonly #keys: LoopbackCertificate;
  readonly #otherKeys: LoopbackCertificate;
  readonly #server: Server;

  private constructor(keys: LoopbackCertificate, otherKeys: LoopbackCertificate) {
    this.ca = keys.cert;
    this.#keys = keys;
    this.#otherKeys = otherKeys;
    this.#server = createServer(keys, (request, response) => void this.#handle(request, response));
  }

  static async start(): Promise<TokenService> {
    const tokens = new TokenService(await createLoopbackCertificate(), await createLoopbackCertificate());
    tokens.#server.listen(0, '127.0.0.1');
    await once(tokens.#server, 'listening');
    return tokens;
  }

  /** `localhost:<port>` */
  get host(): string {
    return `localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  get realm(): string {
    return `https://${this.host}/token`;
  }

  /** A token for a scope such as `repository:a/b:pull,push`. */
  token(scope: string, { audience, issuer, repository, lifetime, isForged = false }: TokenChange = {}): string {
    const [type = '', name = '', actions = ''] = scope.split(':');
    const { cert, key } = isForged ? this.#otherKeys : this.#keys;
    const now = Math.floor(Date.now() / 1000);
    const header = { typ: 'JWT', alg: 'ES256', x5c: [new X509Certificate(cert).raw.toString('base64')] };
    const claims = {
      iss: issuer ?? this.issuer,
      sub: USER,
      aud: audience ?? this.service,
      exp: now + (lifetime ?? LIFETIME_S),
      nbf: now - 10 * LIFETIME_S,
      iat: now - 10 * LIFETIME_S,
      jti: randomUUID(),
      access: scope === '' ? [] : [{ type, name: repository ?? name, actions: actions.split(',') }],
    };
    const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
    return `${signed}.${signature.toString('base64url')}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.realm);
    const isForm = request.method === 'POST';
    const parameters = isForm ? new URLSearchParams(await text(request)) : url.searchParams;
    const credentials = isForm ? refreshToken(parameters) : password(request);
    const scope = parameters.get('scope') ?? '';
    const service = parameters.get('service') ?? '';
    this.requests.push({ method: request.method ?? '', scope, service, credentials });
    if (this.answer !== undefined) {
      this.answer(response);
      return;
    }
    if (credentials === 'wrong') {
      response.writeHead(401).end();
      return;
    }
    const token = this.token(credentials === 'none' ? '' : scope, this.change);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ token, access_token: token }));
  }
}

function password({ headers }: IncomingMessage): TokenRequest['credentials'] {
  const expected = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`;
  return headers.authorization === undefined ? 'none' : headers.authorization === expected ? 'password' : 'wrong';
}

function refreshToken(parameters: URLSearchParams): TokenRequest['credentials'] {
  return parameters.get('grant_type') === 'refresh_token' && parameters.get('refresh_token') === REFRESH_TOKEN
    ? 'refresh-token'
    : 'wrong';
}
