import { createHash } from 'node:crypto';
import { ApiError } from '../../../cluster/index.ts';
import type { Authorizer, ClusterState, UserInfo } from '../request/request.ts';
import { ANONYMOUS, ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP } from '../request/identities.ts';
import { impersonate } from './impersonation.ts';
import type { Impersonation } from './impersonation.ts';
import { ServiceAccountTokens } from './service-account-tokens.ts';
import type { TokenContent, TokenVerdict } from './service-account-tokens.ts';
import { MAX_TOKEN_LENGTH } from './signing-key.ts';
import type { SigningKey } from './signing-key.ts';

/** A static bearer token, and its user. */
export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/** A verified client certificate, as `socket.getPeerCertificate()` returns it. */
export interface ClientCertificate {
  readonly subject: { readonly CN?: string | string[]; readonly O?: string | string[] };
  /** SHA-256, hexadecimal, with colons. */
  readonly fingerprint256?: string;
}

/** The credentials of a request. */
export interface RequestCredentials {
  /** The Authorization header: `Bearer …`. */
  readonly authorization?: string | undefined;
  /** Set only when TLS verified the certificate (`socket.authorized`). */
  readonly certificate?: ClientCertificate | undefined;
  /** See `impersonationOf`. */
  readonly impersonation?: Impersonation | undefined;
}

export interface AuthenticatorOptions {
  readonly state: ClusterState;
  /** Authorizes impersonation. */
  readonly authorizer: Authorizer;
  readonly key: SigningKey;
  /** Default: none. */
  readonly tokens?: readonly StaticToken[];
  /** Whether the user of requests without credentials is `system:anonymous`. Default: false, they are rejected. */
  readonly isAnonymousAllowed?: boolean;
  /** Issuer of service account tokens. Default: {@link DEFAULT_ISSUER}. */
  readonly issuer?: string;
  /** Audiences that this cluster accepts. Default: the issuer. */
  readonly audiences?: readonly string[];
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

const DEFAULT_ISSUER = 'https://kubernetes.default.svc.cluster.local';

const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id';
const INVALID_TOKEN = 'invalid bearer token';

/** Authenticates requests by client certificate, static token, or service account token. */
export class Authenticator {
  /** Default audiences of new tokens. */
  readonly audiences: readonly string[];
  readonly now: () => number;
  readonly #authorizer: Authorizer;
  readonly #isAnonymousAllowed: boolean;
  /** Users by the hash of their token, so that the duration of a lookup reveals nothing about a token. */
  readonly #staticTokens: ReadonlyMap<string, UserInfo>;
  readonly #accountTokens: ServiceAccountTokens;

  constructor(options: AuthenticatorOptions) {
    const { state, key, issuer = DEFAULT_ISSUER, now = Date.now } = options;
    this.#authorizer = options.authorizer;
    this.#isAnonymousAllowed = options.isAnonymousAllowed ?? false;
    this.#staticTokens = new Map((options.tokens ?? []).map(({ token, user }) => [hash(token), user]));
    this.#accountTokens = new ServiceAccountTokens({ state, key, issuer, now });
    this.audiences = options.audiences ?? [issuer];
    this.now = now;
  }

  /**
   * The user of a request.
   * @throws ApiError 401 without valid credentials, 403 when impersonation is not allowed
   */
  authenticate({ authorization, certificate, impersonation }: RequestCredentials): UserInfo {
    const user = this.#userOf(authorization, certificate);
    return impersonation === undefined ? user : impersonate(user, impersonation, this.#authorizer);
  }

  /** The user of a token. The token must be for one of the audiences, by default those of this cluster. */
  authenticateToken(token: string, audiences: readonly string[] = this.audiences): Exclude<TokenVerdict, undefined> {
    if (token.length > MAX_TOKEN_LENGTH) {
      return { error: INVALID_TOKEN };
    }
    const known = this.#staticTokens.get(hash(token));
    if (known !== undefined) {
      const common = this.audiences.filter((one) => audiences.includes(one));
      return common.length === 0 ? { error: INVALID_TOKEN } : { user: withGroup(known), audiences: common };
    }
    const verdict = this.#accountTokens.authenticate(token, audiences);
    if (verdict === undefined) {
      return { error: INVALID_TOKEN };
    }
    return 'error' in verdict ? { error: `[${INVALID_TOKEN}, ${verdict.error}]` } : verdict;
  }

  issueToken(content: TokenContent): string {
    return this.#accountTokens.issue(content);
  }

  #userOf(authorization: string | undefined, certificate: ClientCertificate | undefined): UserInfo {
    const certified = certificate === undefined ? undefined : certifiedUser(certificate);
    if (certified !== undefined) {
      return certified;
    }
    const token = bearerToken(authorization);
    if (token !== undefined) {
      const verdict = this.authenticateToken(token);
      if (!('error' in verdict)) {
        return verdict.user;
      }
    } else if (this.#isAnonymousAllowed) {
      return ANONYMOUS;
    }
    throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  }
}

function bearerToken(authorization: string | undefined): string | undefined {
  const [scheme = '', token = ''] = (authorization ?? '').trim().split(/ +/u);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined;
}

/** The user of a client certificate: the common name. The organizations are the groups. */
function certifiedUser({ subject, fingerprint256 }: ClientCertificate): UserInfo | undefined {
  const [username = ''] = [subject.CN ?? []].flat();
  if (username === '') {
    return undefined;
  }
  return withGroup({
    username,
    groups: [subject.O ?? []].flat(),
    ...(fingerprint256 === undefined
      ? {}
      : { extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint256.replaceAll(':', '').toLowerCase()}`] } }),
  });
}

/** Adds `system:authenticated`. */
function withGroup(user: UserInfo): UserInfo {
  const { username, groups } = user;
  return username === ANONYMOUS_USER || groups.includes(AUTHENTICATED_GROUP) || groups.includes(UNAUTHENTICATED_GROUP)
    ? user
    : { ...user, groups: [...groups, AUTHENTICATED_GROUP] };
}

function hash(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
