import { randomUUID } from 'node:crypto';
import { quote } from '../../../go/index.ts';
import { isJsonObject, textOf } from '../../../resources/index.ts';
import type { JsonObject, JsonValue, KubernetesObject } from '../../../resources/index.ts';
import { quoteList } from '../authorization/policy-rule.ts';
import type { ClusterState, UserInfo } from '../request/request.ts';
import { AUTHENTICATED_GROUP, serviceAccountGroups, serviceAccountName } from '../request/identities.ts';
import { unverifiedClaims } from './signing-key.ts';
import type { SigningKey } from './signing-key.ts';

/** The user of a valid token, and the accepted audiences that it is for. */
interface TokenUser {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

/** The user of a token, or the reason why it is not valid. Undefined when it is not a service account token of this issuer. */
export type TokenVerdict = TokenUser | { readonly error: string } | undefined;

/** The object that a token is bound to: a Pod, Secret or Node. */
export interface BoundObject {
  readonly kind: 'pod' | 'secret' | 'node';
  readonly name: string;
  readonly uid: string;
}

const EXTRA_PREFIX = 'authentication.kubernetes.io/';
const CLAIM = 'kubernetes.io';
const SERVICE_ACCOUNTS = { group: '', resource: 'serviceaccounts' } as const;
const BOUND = {
  secret: { group: '', resource: 'secrets' },
  pod: { group: '', resource: 'pods' },
  node: { group: '', resource: 'nodes' },
} as const;

/** Tolerance for clock differences. As in API servers, tokens also outlive their bound object by this time. Seconds. */
const LEEWAY_SECONDS = 60;

const MS = 1000;

export interface ServiceAccountTokensOptions {
  readonly state: ClusterState;
  readonly key: SigningKey;
  readonly issuer: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The content of a new token. */
export interface TokenContent {
  readonly account: KubernetesObject;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly bound: BoundObject | undefined;
}

/** Issues and verifies service account tokens. A token is valid until it expires, or its account or bound object is deleted. */
export class ServiceAccountTokens {
  readonly #options: ServiceAccountTokensOptions;

  constructor(options: ServiceAccountTokensOptions) {
    this.#options = options;
  }

  issue({ account, audiences, expirationSeconds, bound }: TokenContent): string {
    const { namespace = '', name = '', uid = '' } = account.metadata;
    const now = Math.floor(this.#options.now() / MS);
    return this.#options.key.sign({
      aud: [...audiences],
      exp: now + expirationSeconds,
      iat: now,
      iss: this.#options.issuer,
      jti: randomUUID(),
      [CLAIM]: {
        namespace,
        ...(bound === undefined ? {} : { [bound.kind]: { name: bound.name, uid: bound.uid } }),
        serviceaccount: { name, uid },
      },
      nbf: now,
      sub: serviceAccountName(namespace, name),
    });
  }

  /** Verifies a token. It must be for one of the accepted audiences. */
  authenticate(token: string, acceptedAudiences: readonly string[]): TokenVerdict {
    const { key, issuer } = this.#options;
    if (unverifiedClaims(token)?.iss !== issuer) {
      return undefined;
    }
    const claims = key.verify(token);
    if (claims === undefined) {
      return { error: 'the token is not signed by this cluster' };
    }
    const audiences = audiencesOf(claims.aud);
    const common = audiences.filter((one) => acceptedAudiences.includes(one));
    if (common.length === 0) {
      const error = `token audiences ${quoteList(audiences)} is invalid for the target audiences ${quoteList(acceptedAudiences)}`;
      return { error };
    }
    const problem = this.#timeProblem(claims) ?? this.#objectProblem(claims);
    return problem === undefined ? { user: userOf(claims), audiences: common } : { error: problem };
  }

  #timeProblem({ exp, nbf, iat }: JsonObject): string | undefined {
    const now = this.#options.now() / MS;
    if (typeof nbf === 'number' && now + LEEWAY_SECONDS < nbf) {
      return 'service account token is not valid yet';
    }
    if (typeof exp !== 'number' || now - LEEWAY_SECONDS > exp) {
      return 'service account token has expired';
    }
    return typeof iat === 'number' && now + LEEWAY_SECONDS < iat
      ? 'service account token is issued in the future'
      : undefined;
  }

  /** An error if the account or a bound object does not exist any more. */
  #objectProblem(claims: JsonObject): string | undefined {
    const { namespace, serviceaccount, ...bound } = objectOf(claims[CLAIM]);
    const accountNamespace = textOf(namespace);
    const account = objectOf(serviceaccount);
    const name = textOf(account.name);
    const found = this.#options.state.get(SERVICE_ACCOUNTS, accountNamespace, name);
    if (found === undefined) {
      return `serviceaccounts ${quote(name)} not found`;
    }
    if (found.metadata.uid !== account.uid) {
      return `service account UID (${found.metadata.uid ?? ''}) does not match claim (${textOf(account.uid)})`;
    }
    if (this.#isGone(found)) {
      return `service account ${accountNamespace}/${name} has been deleted`;
    }
    for (const kind of ['secret', 'pod'] as const) {
      const problem = this.#boundProblem(kind, bound[kind], accountNamespace);
      if (problem !== undefined) {
        return problem;
      }
    }
    // If the token is bound to a pod, its node claim is only informative.
    return bound.pod === undefined ? this.#boundProblem('node', bound.node, undefined) : undefined;
  }

  #boundProblem(
    kind: BoundObject['kind'],
    claim: JsonValue | undefined,
    namespace: string | undefined,
  ): string | undefined {
    if (!isJsonObject(claim)) {
      return undefined;
    }
    const found = this.#options.state.get(BOUND[kind], namespace, textOf(claim.name));
    if (found === undefined || this.#isGone(found)) {
      return 'service account token has been invalidated';
    }
    const { uid = '' } = found.metadata;
    return uid === claim.uid
      ? undefined
      : `${kind} UID (${uid}) does not match service account ${kind} ref claim (${textOf(claim.uid)})`;
  }

  #isGone({ metadata }: KubernetesObject): boolean {
    const { deletionTimestamp } = metadata;
    return deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < this.#options.now() - LEEWAY_SECONDS * MS;
  }
}

function userOf(claims: JsonObject): UserInfo {
  const { namespace, serviceaccount, pod, node } = objectOf(claims[CLAIM]);
  const account = objectOf(serviceaccount);
  const extra: Record<string, readonly string[]> = {
    [`${EXTRA_PREFIX}credential-id`]: [`JTI=${textOf(claims.jti)}`],
  };
  for (const [kind, claim] of [
    ['pod', pod],
    ['node', node],
  ] as const) {
    if (isJsonObject(claim)) {
      extra[`${EXTRA_PREFIX}${kind}-name`] = [textOf(claim.name)];
      extra[`${EXTRA_PREFIX}${kind}-uid`] = [textOf(claim.uid)];
    }
  }
  return {
    username: serviceAccountName(textOf(namespace), textOf(account.name)),
    uid: textOf(account.uid),
    groups: [...serviceAccountGroups(textOf(namespace)), AUTHENTICATED_GROUP],
    extra,
  };
}

/** The audiences of a token. A single one may be a string (RFC 7519, section 4.1.3). */
function audiencesOf(aud: JsonValue | undefined): readonly string[] {
  return typeof aud === 'string' ? [aud] : Array.isArray(aud) ? aud.filter((one) => typeof one === 'string') : [];
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
