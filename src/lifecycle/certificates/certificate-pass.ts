// One pass over own certificates: reads the Secrets, plans, writes, and repeats until nothing is left to write.
import type { Logger } from 'pino';
import { ApiError, type Cluster, listAll, unlessGone } from '../../cluster/index.ts';
import { type KubernetesObject, MANAGED_BY_SELECTOR } from '../../resources/index.ts';
import { Waiting } from '../../runtime/index.ts';
import { changedAuthority } from './authority-change.ts';
import {
  type Authority,
  authoritySecret,
  type FoundAuthority,
  isRotationRequested,
  readAuthority,
  ROTATE_ANNOTATION,
  trustedOf,
} from './authority-secret.ts';
import { AUTHORITY_SECRET, wantedCertificates } from './certificate-names.ts';
import {
  type AuthorityState,
  type AuthorityStep,
  type LeafStep,
  phaseOf,
  planCertificates,
} from './certificate-plan.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import type { CertificateEvent, CertificateProblem, CertificatesReport } from './certificates-report.ts';
import type { IssueRateLimit } from './issue-rate-limit.ts';
import { type FoundLeaf, issueLeaf, leafSecret, readLeaf, survivingAuthorities } from './leaf-secret.ts';
import { bundleOf, type ParsedCertificate } from './parsed-certificate.ts';
import { isOurs, type Secret, SECRETS } from './secret.ts';
import { errorText } from '../../values/index.ts';

/** Rounds of one pass: create a CA, issue certificates, record the time, and some for conflicts. */
const MAX_ROUNDS = 8;
/** Delay after a pass with too many conflicts. Milliseconds. */
const CONFLICTS_RETRY_MS = 1_000;

/** Delay after a pass with problems. Milliseconds. */
const PROBLEMS_RETRY_MS = 60_000;

export interface CertificatePassOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly settings: CertificateSettings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
}

export interface PassOptions {
  readonly policyServers: readonly string[];
  /** Whether this process leads; see `CertificatesState`. */
  readonly isLeading: boolean;
  /** Whether webhook configurations have all of these CAs. */
  readonly isPublished: (trusted: readonly ParsedCertificate[]) => boolean;
}

interface PassParts extends CertificatePassOptions, PassOptions {
  readonly rateLimit: IssueRateLimit;
  /** The last Secret of the CA that had its certificate and key. */
  readonly lastGood: Secret | undefined;
  readonly signal: AbortSignal;
}

interface FoundCertificates {
  readonly found: FoundAuthority;
  readonly leaves: readonly FoundLeaf[];
  /** All certificates of ours, also unused ones. */
  readonly all: readonly FoundLeaf[];
}

export class CertificatePass {
  readonly #parts: PassParts;
  readonly #events: CertificateEvent[] = [];
  readonly #problems = new Map<string, CertificateProblem>();
  readonly #failures = new Map<string, unknown>();
  /** The last Secret of the CA that had its certificate and key. */
  lastGood: Secret | undefined;

  constructor(parts: PassParts) {
    this.#parts = parts;
    this.lastGood = parts.lastGood;
  }

  async run(): Promise<CertificatesReport> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const certificates = await this.#read();
      const { found } = certificates;
      if (found.kind === 'foreign') {
        this.#reportForeign(AUTHORITY_SECRET);
        return this.#report(certificates, undefined);
      }
      if (this.#failures.has(AUTHORITY_SECRET)) {
        return this.#report(certificates, undefined);
      }
      if (await this.#restored(found)) {
        continue;
      }
      const plan = this.#plan(certificates);
      if (plan.step !== undefined) {
        await this.#change(certificates, plan.step);
        continue;
      }
      const steps = plan.leaves.filter((step) => !this.#failures.has(step.secret) && this.#mayIssue(step));
      if (steps.length === 0) {
        return this.#report(certificates, plan.requeueAfterMs);
      }
      for (const step of steps) {
        await this.#renew(certificates, step);
      }
    }
    throw new Waiting(
      'CertificatesContended',
      CONFLICTS_RETRY_MS,
      'another process writes certificates at the same time',
    );
  }

  async #read(): Promise<FoundCertificates> {
    const { cluster, namespace, policyServers, signal } = this.#parts;
    const key = { namespace, name: AUTHORITY_SECRET };
    const found = readAuthority(await unlessGone(cluster.get(SECRETS, key, { signal })));
    const { items } = await listAll(cluster, SECRETS, { namespace, labelSelector: MANAGED_BY_SELECTOR, signal });
    const objects = new Map(items.map((object) => [object.metadata.name ?? '', object]));
    const known = found.kind === 'usable' ? trustedOf(found.authority) : [];
    const wanted = wantedCertificates(namespace, policyServers);
    const leaves = wanted.map((each) => readLeaf(objects.get(each.secret), each, known));
    const names = new Set(wanted.map(({ secret }) => secret));
    const others = [...objects]
      .filter(([name]) => name !== AUTHORITY_SECRET && !names.has(name))
      .map(([secret, object]) => readLeaf(object, { secret, dnsNames: [], usages: [] }, known));
    return { found, leaves, all: [...leaves, ...others] };
  }

  #plan({ found, leaves }: FoundCertificates): ReturnType<typeof planCertificates> {
    const { isLeading, isPublished, settings, now } = this.#parts;
    const state = {
      authority: found.kind === 'usable' ? stateOf(found.secret, found.authority) : ('absent' as const),
      // A foreign Secret does not block a rotation; one of ours that cannot be written does.
      leaves: leaves.filter(({ secret }) => this.#problems.get(secret)?.reason !== 'SecretNotOurs'),
      isPublished: found.kind === 'usable' && isPublished(trustedOf(found.authority)),
      isLeading,
    };
    return planCertificates(found.kind === 'unusable' ? { ...state, authority: 'unusable' } : state, now(), settings);
  }

  /** Restores a lost CA, if this process knows it. @returns whether to start another round */
  async #restored(found: FoundAuthority): Promise<boolean> {
    if (found.kind === 'usable' && found.authority.current.key !== undefined) {
      this.lastGood = found.secret;
      return false;
    }
    const known = readAuthority(this.lastGood);
    const isExpired = known.kind === 'usable' && known.authority.current.certificate.notAfter <= this.#parts.now();
    if (known.kind !== 'usable' || isExpired || isReplacement(found, known.authority)) {
      this.lastGood = undefined;
      return false;
    }
    // The known CA is kept: the Secret can be changed again before the next round reads it.
    const existing = secretOf(found);
    const isWritten = await this.#writeAuthority(existing, known.authority);
    if (isWritten) {
      const what = existing === undefined ? 'was deleted' : 'was unusable';
      this.#addEvent(AUTHORITY_SECRET, 'Warning', 'AuthorityRestored', `the CA ${what}, and was restored`);
    }
    return true;
  }

  async #change({ found, all }: FoundCertificates, { action, reason }: AuthorityStep): Promise<void> {
    const { now, settings, log } = this.#parts;
    const existing = secretOf(found);
    const authority = found.kind === 'usable' ? found.authority : undefined;
    const changed = await changedAuthority(action, {
      authority,
      request: existing?.metadata.annotations?.[ROTATE_ANNOTATION],
      // They stay trusted until the rotation to the new CA ends.
      survivors: survivingAuthorities(all, now()),
      now: now(),
      settings,
    });
    if (!(await this.#writeAuthority(existing, changed))) {
      return;
    }
    log.info({ action, reason, phase: phaseOf(planned(changed)) }, 'CA changed');
    const message = MESSAGES[action];
    if (message !== undefined) {
      const type = action === 'create' && existing !== undefined ? 'Warning' : 'Normal';
      const why = found.kind === 'unusable' ? `${reason} (${found.reason})` : reason;
      this.#addEvent(AUTHORITY_SECRET, type, message.reason, `${message.text}: ${why}`);
    }
  }

  /** @returns whether it was written; not after a conflict or another error */
  #writeAuthority(existing: Secret | undefined, authority: Authority): Promise<boolean> {
    const { namespace } = this.#parts;
    return this.#write(AUTHORITY_SECRET, existing, authoritySecret(existing, namespace, authority));
  }

  async #renew({ found, leaves }: FoundCertificates, { secret, action, reason }: LeafStep): Promise<void> {
    const { namespace, now, settings, rateLimit, log } = this.#parts;
    const leaf = leaves.find((each) => each.secret === secret);
    if (found.kind !== 'usable' || leaf === undefined) {
      return;
    }
    const { current, next } = found.authority;
    const signer = current.key === undefined ? next : { certificate: current.certificate, key: current.key };
    const isIssued = action === 'issue' && signer !== undefined;
    if (isIssued) {
      rateLimit.note(secret, now());
    }
    const issued = isIssued ? await issueLeaf(signer, leaf.wanted, now(), settings) : undefined;
    const written = leafSecret(leaf, namespace, trustedOf(found.authority), issued);
    if (!(await this.#write(secret, leaf.object, written, leaf.wanted.policyServer))) {
      return;
    }
    log.info({ secret, action, reason }, 'certificate written');
    if (leaf.fault !== undefined) {
      this.#addEvent(secret, 'Warning', 'CertificateReplaced', `a new certificate was issued: ${leaf.fault}`);
    }
  }

  /** Whether a step is within the rate limit, which stops a fight with another writer of the Secret. */
  #mayIssue({ secret, action, reason }: LeafStep): boolean {
    const { rateLimit, now } = this.#parts;
    if (action !== 'issue' || rateLimit.allows(secret, now())) {
      return true;
    }
    const message = `another process keeps changing Secret ${secret}: ${reason}. Find out which one writes it.`;
    this.#problems.set(secret, { secret, reason: 'CertificateContested', message });
    return false;
  }

  /** Writes a Secret. @returns whether it was written; not after a conflict or another error, which becomes a problem */
  async #write(
    secret: string,
    existing: Secret | undefined,
    object: KubernetesObject,
    policyServer?: string,
  ): Promise<boolean> {
    const { cluster, namespace, signal } = this.#parts;
    try {
      await (existing === undefined
        ? cluster.create(SECRETS, object, { signal })
        : cluster.update(SECRETS, object, { signal }));
      return true;
    } catch (error) {
      const reason = error instanceof ApiError ? error.reason : undefined;
      if (reason === 'AlreadyExists') {
        const other = await unlessGone(cluster.get(SECRETS, { namespace, name: secret }, { signal }));
        if (other !== undefined && !isOurs(other)) {
          this.#reportForeign(secret, policyServer);
        }
      } else if (reason !== 'Conflict' && reason !== 'NotFound') {
        this.#failures.set(secret, error);
        const message = `Secret ${secret} could not be written: ${errorText(error)}`;
        this.#problems.set(secret, { secret, policyServer, reason: 'CertificateNotWritten', message });
      }
      return false;
    }
  }

  #reportForeign(secret: string, policyServer?: string): void {
    const message =
      `Secret ${secret} has no label ${MANAGED_BY_SELECTOR}, so it belongs to another owner and is not changed. ` +
      'Delete it, or add the label if Portcullis created it; or use --certificates external.';
    this.#problems.set(secret, { secret, policyServer, reason: 'SecretNotOurs', message });
  }

  #addEvent(secret: string, type: CertificateEvent['type'], reason: string, message: string): void {
    this.#events.push({ secret, type, reason, message });
  }

  #report({ found, leaves }: FoundCertificates, requeueAfterMs = PROBLEMS_RETRY_MS): CertificatesReport {
    const authority = found.kind === 'usable' ? found.authority : undefined;
    const expiries = new Map(
      leaves.flatMap(({ secret, certificate }) => (certificate ? [[secret, certificate.notAfter] as const] : [])),
    );
    if (authority !== undefined) {
      expiries.set(AUTHORITY_SECRET, authority.current.certificate.notAfter);
    }
    return {
      bundle: authority === undefined ? undefined : bundleOf(trustedOf(authority)),
      phase: authority === undefined ? 'Stable' : phaseOf(planned(authority)),
      expiries,
      problems: [...this.#problems.values()],
      events: this.#events,
      failures: [...this.#failures.values()],
      // No watch reports that a foreign Secret was deleted.
      requeueAfterMs: this.#problems.size === 0 ? requeueAfterMs : Math.min(requeueAfterMs, PROBLEMS_RETRY_MS),
    };
  }
}

const MESSAGES: Readonly<Record<AuthorityStep['action'], { reason: string; text: string } | undefined>> = {
  create: { reason: 'AuthorityCreated', text: 'a CA was created' },
  introduce: { reason: 'RotationStarted', text: 'a new CA was created, and is trusted beside the current one' },
  spread: undefined,
  promote: {
    reason: 'AuthorityChanged',
    text: 'the new CA issues certificates now, and the old one is still trusted',
  },
  retire: { reason: 'RotationCompleted', text: 'the old CA is not trusted any more' },
};

function secretOf(found: FoundAuthority): Secret | undefined {
  return found.kind === 'absent' ? undefined : found.secret;
}

/** Whether a Secret holds another CA than the known one, although without its key. */
function isReplacement(found: FoundAuthority, known: Authority): boolean {
  return found.kind === 'usable' && found.authority.current.certificate.id !== known.current.certificate.id;
}

function planned(authority: Authority): Pick<AuthorityState, 'next' | 'previous'> {
  return { next: authority.next?.certificate, previous: authority.previous };
}

function stateOf(secret: Secret, authority: Authority): AuthorityState {
  const { certificate, key } = authority.current;
  return {
    current: { ...certificate, hasKey: key !== undefined },
    ...planned(authority),
    spreadAt: authority.spreadAt,
    isRotationRequested: isRotationRequested(secret, authority),
  };
}
