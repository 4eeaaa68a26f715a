// One look at own certificates: at the Secrets, a plan, what it says, and again until nothing is to be done.
import type { Logger } from 'pino';
import { ApiError, type Cluster, listAll, unlessGone } from '../../cluster/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { Waiting } from '../../runtime/index.ts';
import { changedAuthority } from './authority-change.ts';
import {
  type Authority,
  type FoundAuthority,
  isRotationAsked,
  readAuthority,
  ROTATE_ANNOTATION,
  trustedOf,
  writtenAuthority,
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
import type { CertificateNotice, CertificateProblem, CertificatesReport } from './certificates-report.ts';
import type { IssueRestraint } from './issue-restraint.ts';
import { type FoundLeaf, issueLeaf, readLeaf, survivingAuthorities, writtenLeaf } from './leaf-secret.ts';
import { bundleOf, type ParsedCertificate } from './parsed-certificate.ts';
import { isOurs, type Secret, SECRETS } from './secret.ts';
import { MANAGED_BY_SELECTOR } from '../managed-by.ts';
import { errorText } from '../../values/index.ts';

/** Looks of one pass: create, issue, note the time, and some for lost races. */
const MAX_ROUNDS = 8;
/** After that, others may be done. Milliseconds. */
const CONTENDED_MS = 1_000;

/** When a look that could not end well is tried again. Milliseconds. */
const PROBLEM_MS = 60_000;

export interface CertificatePassOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly settings: CertificateSettings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
}

/** What a pass is about. */
export interface PassOptions {
  readonly policyServers: readonly string[];
  /** Whether this process leads; see `CertificatesState`. */
  readonly isLeading: boolean;
  /** Whether API servers were told of these CAs. */
  readonly isTold: (trusted: readonly ParsedCertificate[]) => boolean;
}

interface PassParts extends CertificatePassOptions, PassOptions {
  readonly restraint: IssueRestraint;
  /** The Secret of the CA when it was good for the last time. */
  readonly lastGood: Secret | undefined;
  readonly signal: AbortSignal;
}

interface View {
  readonly found: FoundAuthority;
  readonly leaves: readonly FoundLeaf[];
  /** All certificates of ours, also those that nobody wants any more. */
  readonly all: readonly FoundLeaf[];
}

export class CertificatePass {
  readonly #parts: PassParts;
  readonly #notices: CertificateNotice[] = [];
  readonly #problems = new Map<string, CertificateProblem>();
  readonly #failures = new Map<string, unknown>();
  /** The Secret of the CA as it is good now, or was at last. */
  good: Secret | undefined;

  constructor(parts: PassParts) {
    this.#parts = parts;
    this.good = parts.lastGood;
  }

  async run(): Promise<CertificatesReport> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const view = await this.#look();
      const { found } = view;
      if (found.kind === 'foreign') {
        this.#notOurs(AUTHORITY_SECRET);
        return this.#report(view, undefined);
      }
      if (this.#failures.has(AUTHORITY_SECRET)) {
        return this.#report(view, undefined);
      }
      if (await this.#restored(found)) {
        continue;
      }
      const plan = this.#plan(view);
      if (plan.step !== undefined) {
        await this.#change(view, plan.step);
        continue;
      }
      const steps = plan.leaves.filter((step) => !this.#failures.has(step.secret) && this.#isPossible(step));
      if (steps.length === 0) {
        return this.#report(view, plan.lookAgainMs);
      }
      for (const step of steps) {
        await this.#renew(view, step);
      }
    }
    throw new Waiting('CertificatesContended', CONTENDED_MS, 'somebody else writes certificates at the same time');
  }

  async #look(): Promise<View> {
    const { cluster, namespace, policyServers, signal } = this.#parts;
    const key = { namespace, name: AUTHORITY_SECRET };
    const found = readAuthority(await unlessGone(cluster.get(SECRETS, key, { signal })));
    const { items } = await listAll(cluster, SECRETS, { namespace, labelSelector: MANAGED_BY_SELECTOR, signal });
    const objects = new Map(items.map((object) => [object.metadata.name ?? '', object]));
    const known = found.kind === 'kept' ? trustedOf(found.authority) : [];
    const wanted = wantedCertificates(namespace, policyServers);
    const leaves = wanted.map((each) => readLeaf(objects.get(each.secret), each, known));
    const names = new Set(wanted.map(({ secret }) => secret));
    const others = [...objects]
      .filter(([name]) => name !== AUTHORITY_SECRET && !names.has(name))
      .map(([secret, object]) => readLeaf(object, { secret, dnsNames: [], usages: [] }, known));
    return { found, leaves, all: [...leaves, ...others] };
  }

  #plan({ found, leaves }: View): ReturnType<typeof planCertificates> {
    const { isLeading, isTold, settings, now } = this.#parts;
    const state = {
      authority: found.kind === 'kept' ? stateOf(found.secret, found.authority) : ('absent' as const),
      // What is somebody else's holds up nothing; what could only not be written does.
      leaves: leaves.filter(({ secret }) => this.#problems.get(secret)?.reason !== 'SecretNotOurs'),
      isTold: found.kind === 'kept' && isTold(trustedOf(found.authority)),
      isLeading,
    };
    return planCertificates(found.kind === 'unusable' ? { ...state, authority: 'unusable' } : state, now(), settings);
  }

  /** Writes back the CA where it was lost, and is still known. */
  async #restored(found: FoundAuthority): Promise<boolean> {
    if (found.kind === 'kept' && found.authority.current.key !== undefined) {
      this.good = found.secret;
      return false;
    }
    const { good } = this;
    const known = readAuthority(good);
    // Once: whoever takes it away again has a reason.
    this.good = undefined;
    if (known.kind !== 'kept' || known.authority.current.certificate.notAfter <= this.#parts.now()) {
      return false;
    }
    const isAnother =
      found.kind === 'kept' && found.authority.current.certificate.id !== known.authority.current.certificate.id;
    if (isAnother) {
      return false;
    }
    const existing = secretOf(found);
    const isWritten = await this.#writeAuthority(existing, known.authority);
    if (this.#failures.has(AUTHORITY_SECRET)) {
      // Another attempt is worth it: a new CA would be trusted by nobody yet.
      this.good = good;
    }
    if (isWritten) {
      const what = existing === undefined ? 'was deleted' : 'could not be used any more';
      this.#tell(AUTHORITY_SECRET, 'Warning', 'AuthorityRestored', `the CA ${what}; it was written back`);
    }
    return true;
  }

  async #change({ found, all }: View, { action, reason }: AuthorityStep): Promise<void> {
    const { now, settings, log } = this.#parts;
    const existing = secretOf(found);
    const authority = found.kind === 'kept' ? found.authority : undefined;
    const changed = await changedAuthority(action, {
      authority,
      asked: existing?.metadata.annotations?.[ROTATE_ANNOTATION],
      // What everybody trusts stays trusted, and is left by and by.
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
      this.#tell(AUTHORITY_SECRET, type, message.reason, `${message.text}: ${why}`);
    }
  }

  /** Whether it was written: not when somebody else was quicker, or it failed. */
  #writeAuthority(existing: Secret | undefined, authority: Authority): Promise<boolean> {
    const { namespace } = this.#parts;
    return this.#write(AUTHORITY_SECRET, existing, writtenAuthority(existing, namespace, authority));
  }

  async #renew({ found, leaves }: View, { secret, action, reason }: LeafStep): Promise<void> {
    const { namespace, now, settings, restraint, log } = this.#parts;
    const leaf = leaves.find((each) => each.secret === secret);
    if (found.kind !== 'kept' || leaf === undefined) {
      return;
    }
    const { current, next } = found.authority;
    const signer = current.key === undefined ? next : { certificate: current.certificate, key: current.key };
    const isIssued = action === 'issue' && signer !== undefined;
    if (isIssued) {
      restraint.note(secret, now());
    }
    const issued = isIssued ? await issueLeaf(signer, leaf.wanted, now(), settings) : undefined;
    const written = writtenLeaf(leaf, namespace, trustedOf(found.authority), issued);
    if (!(await this.#write(secret, leaf.object, written, leaf.wanted.policyServer))) {
      return;
    }
    log.info({ secret, action, reason }, 'certificate written');
    if (leaf.fault !== undefined) {
      this.#tell(secret, 'Warning', 'CertificateReplaced', `a new certificate was made: ${leaf.fault}`);
    }
  }

  /** Somebody else may write the same Secret, again and again. */
  #isPossible({ secret, action, reason }: LeafStep): boolean {
    const { restraint, now } = this.#parts;
    if (action !== 'issue' || restraint.allows(secret, now())) {
      return true;
    }
    const message = `Secret ${secret} is changed by somebody else again and again: ${reason}. Find out who else writes it.`;
    this.#problems.set(secret, { secret, reason: 'CertificateContested', message });
    return false;
  }

  /** Writes what was looked at, unless it has changed since. */
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
          this.#notOurs(secret, policyServer);
        }
      } else if (reason !== 'Conflict' && reason !== 'NotFound') {
        this.#failures.set(secret, error);
        const message = `Secret ${secret} could not be written: ${errorText(error)}`;
        this.#problems.set(secret, { secret, policyServer, reason: 'CertificateNotWritten', message });
      }
      return false;
    }
  }

  #notOurs(secret: string, policyServer?: string): void {
    const message =
      `Secret ${secret} has no label ${MANAGED_BY_SELECTOR}, so it is somebody else's and stays as it is. ` +
      'Delete it, or give it the label if it was made by Portcullis; or run with certificates kept by others.';
    this.#problems.set(secret, { secret, policyServer, reason: 'SecretNotOurs', message });
  }

  #tell(secret: string, type: CertificateNotice['type'], reason: string, message: string): void {
    this.#notices.push({ secret, type, reason, message });
  }

  #report({ found, leaves }: View, lookAgainMs = PROBLEM_MS): CertificatesReport {
    const authority = found.kind === 'kept' ? found.authority : undefined;
    const expiries = new Map(leaves.flatMap(({ secret, held }) => (held ? [[secret, held.notAfter] as const] : [])));
    if (authority !== undefined) {
      expiries.set(AUTHORITY_SECRET, authority.current.certificate.notAfter);
    }
    return {
      bundle: authority === undefined ? undefined : bundleOf(trustedOf(authority)),
      phase: authority === undefined ? 'Stable' : phaseOf(planned(authority)),
      expiries,
      problems: [...this.#problems.values()],
      notices: this.#notices,
      failures: [...this.#failures.values()],
      // Nobody tells when somebody else's Secret is out of the way.
      lookAgainMs: this.#problems.size === 0 ? lookAgainMs : Math.min(lookAgainMs, PROBLEM_MS),
    };
  }
}

const MESSAGES: Readonly<Record<AuthorityStep['action'], { reason: string; text: string } | undefined>> = {
  create: { reason: 'AuthorityCreated', text: 'a CA was made' },
  introduce: { reason: 'RotationStarted', text: 'another CA was made, and is trusted beside the current one' },
  spread: undefined,
  promote: {
    reason: 'AuthorityChanged',
    text: 'certificates come from the next CA now, and the old one is trusted on',
  },
  retire: { reason: 'RotationCompleted', text: 'the old CA is trusted no more' },
};

function secretOf(found: FoundAuthority): Secret | undefined {
  return found.kind === 'absent' ? undefined : found.secret;
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
    isAsked: isRotationAsked(secret, authority),
  };
}
