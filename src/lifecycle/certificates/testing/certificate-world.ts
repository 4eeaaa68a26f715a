// Simulates an installation over years: plans are applied at once, and processes load the results later. No real certificates.
import {
  type AuthorityState,
  type CertificatesState,
  type CertificateTimes,
  type LeafState,
  phaseOf,
  planCertificates,
  signerOf,
} from '../certificate-plan.ts';
import { BACKDATED_MS, type CertificateSettings } from '../certificate-settings.ts';

/** Rounds of one pass: more than any pass needs. */
const MAX_ROUNDS = 20;

type Certificate = NonNullable<LeafState['certificate']>;

/** The content of a Secret that a process has loaded. */
interface Copy {
  readonly certificate: Certificate | undefined;
  readonly trusts: readonly string[];
}

export interface WorldOptions {
  readonly settings: CertificateSettings;
  readonly secrets: readonly string[];
  /** From 0 to below 1. */
  readonly random: () => number;
}

export class CertificateWorld {
  /** The true time. */
  now = Date.UTC(2030, 0, 1);
  /** How far the leader's clock is ahead. */
  ahead = 0;
  authority: AuthorityState | 'absent' | 'unusable' = 'absent';
  readonly leaves = new Map<string, LeafState>();
  readonly changes: string[] = [];
  /** Secrets that cannot be written now, or `configuration` for webhook configurations. */
  readonly stuck = new Set<string>();
  readonly #options: WorldOptions;
  readonly #processes = new Map<string, Copy>();
  /** All CAs so far. */
  readonly #known = new Map<string, CertificateTimes>();
  readonly #arrivals: { readonly at: number; readonly apply: () => void }[] = [];
  #configured: readonly string[] = [];
  #apiServer: readonly string[] = [];
  #count = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    for (const secret of options.secrets) {
      this.leaves.set(secret, { secret, trusts: [] });
    }
  }

  /** One pass, until nothing is left to write. @returns the delay until the next pass */
  pass(isLeading = true): number {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { settings } = this.#options;
      const { authority } = this;
      const leaves = [...this.leaves.values()];
      const isPublished = this.trusted.every((id) => this.#configured.includes(id)) || this.#configured.length === 0;
      const state: CertificatesState = { authority, leaves, isPublished, isLeading };
      const plan = planCertificates(state, this.now + this.ahead, settings);
      if (plan.step !== undefined) {
        this.changes.push(plan.step.action);
        this.#apply(plan.step.action);
        continue;
      }
      const steps = plan.leaves.filter(({ secret }) => !this.stuck.has(secret));
      for (const step of steps) {
        this.#write(step.secret, step.action === 'issue');
      }
      if (steps.length === 0) {
        this.#configure();
        return plan.requeueAfterMs;
      }
    }
    throw new Error('the plan has no end');
  }

  /** Advances the time, and lets processes load what was written. */
  waitUntil(now: number): void {
    this.now = now;
    const due = this.#arrivals.filter(({ at }) => at <= now).toSorted((a, b) => a.at - b.at);
    for (const arrival of due) {
      this.#arrivals.splice(this.#arrivals.indexOf(arrival), 1);
      arrival.apply();
    }
  }

  get trusted(): readonly string[] {
    const { authority } = this;
    return typeof authority === 'string'
      ? []
      : [authority.current, ...(authority.next === undefined ? [] : [authority.next]), ...authority.previous].map(
          ({ id }) => id,
        );
  }

  get phase(): string {
    return typeof this.authority === 'string' ? this.authority : phaseOf(this.authority);
  }

  /** The calls that would fail now, if all processes called each other. */
  failures(): readonly string[] {
    const copies = [...this.#processes];
    const trusts = [...copies.map(([name, copy]) => [name, copy.trusts] as const), ['api', this.#apiServer] as const];
    return copies.flatMap(([server, { certificate }]) => {
      if (certificate === undefined) {
        return [];
      }
      const wrong =
        certificate.notAfter <= this.now ? ['expired'] : certificate.notBefore > this.now ? ['not valid yet'] : [];
      const untrusted = trusts
        .filter(([, ids]) => !ids.includes(certificate.issuer ?? ''))
        .map(([name]) => `not trusted by ${name}`);
      return [...wrong, ...untrusted].map((text) => `${server}: ${text}`);
    });
  }

  #apply(action: NonNullable<ReturnType<typeof planCertificates>['step']>['action']): void {
    const { authority } = this;
    const now = this.now + this.ahead;
    if (action === 'create' || typeof authority === 'string') {
      const created = this.#newAuthority();
      const survivor = [...this.leaves.values()].find(
        ({ certificate }) => certificate !== undefined && certificate.notAfter > now,
      )?.certificate;
      this.authority =
        survivor?.issuer === undefined
          ? { current: { ...created, hasKey: true }, previous: [], isRotationRequested: false }
          : {
              current: { ...(this.#known.get(survivor.issuer) ?? created), hasKey: false },
              next: created,
              previous: [],
              isRotationRequested: false,
            };
      return;
    }
    const { current, next, previous } = authority;
    switch (action) {
      case 'introduce':
        this.authority = { current, next: this.#newAuthority(), previous, isRotationRequested: false };
        break;
      case 'spread':
        this.authority = { ...authority, spreadAt: now };
        break;
      case 'promote':
        this.authority = { ...authority, ...promoted(authority, now), spreadAt: undefined };
        break;
      case 'retire':
        this.authority = { current, next, previous: [], isRotationRequested: authority.isRotationRequested };
        break;
      default:
        action satisfies never;
    }
  }

  #newAuthority(): CertificateTimes {
    this.#count += 1;
    const now = this.now + this.ahead;
    const { authorityLifetimeMs } = this.#options.settings;
    const id = `ca-${this.#count}`;
    const created = { id, notBefore: now - BACKDATED_MS, notAfter: now + authorityLifetimeMs };
    this.#known.set(id, created);
    return created;
  }

  #write(secret: string, isIssued: boolean): void {
    const { authority } = this;
    const leaf = this.leaves.get(secret);
    const signer = typeof authority === 'string' ? undefined : signerOf(authority);
    if (leaf === undefined || signer === undefined) {
      return;
    }
    const now = this.now + this.ahead;
    const { leafLifetimeMs, overlapMs } = this.#options.settings;
    const notAfter = Math.min(now + leafLifetimeMs, signer.notAfter);
    const certificate = isIssued ? { issuer: signer.id, notBefore: now - BACKDATED_MS, notAfter } : leaf.certificate;
    this.leaves.set(secret, { secret, certificate, trusts: this.trusted });
    this.#arrive(overlapMs, () => {
      const latest = this.leaves.get(secret);
      this.#processes.set(secret, { certificate: latest?.certificate, trusts: latest?.trusts ?? [] });
    });
  }

  /** Writes the trusted CAs to webhook configurations. */
  #configure(): void {
    if (!this.stuck.has('configuration') && this.trusted.join() !== this.#configured.join()) {
      this.#configured = this.trusted;
      this.#arrive(this.#options.settings.overlapMs, () => {
        this.#apiServer = this.#configured;
      });
    }
  }

  /** Delivers a write after a random time, up to almost the longest permitted one. */
  #arrive(withinMs: number, apply: () => void): void {
    this.#arrivals.push({ at: this.now + Math.trunc(this.#options.random() * 0.85 * withinMs), apply });
  }
}

function promoted({ current, next, previous, isRotationRequested }: AuthorityState, now: number): AuthorityState {
  return next === undefined
    ? { current, previous, isRotationRequested }
    : {
        current: { ...next, hasKey: true },
        next: undefined,
        previous: [current, ...previous].filter(({ notAfter }) => notAfter > now),
        isRotationRequested,
      };
}
