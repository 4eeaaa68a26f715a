import { ModuleError } from './errors.ts';

/** The parts of a reference to an artifact in a registry (https://github.com/opencontainers/distribution-spec). */
export interface ImageName {
  /** `host` or `host:port`. */
  readonly host: string;
  readonly repository: string;
  readonly tag: string | undefined;
}

/** Longest repository name: that of Docker's reference grammar. */
const MAX_REPOSITORY_LENGTH = 255;
const DOCKER_HUB = 'docker.io';
const DOCKER_HUB_NAMES: ReadonlySet<string> = new Set([DOCKER_HUB, 'index.docker.io']);
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const FORM = 'registry://host/repository:tag or registry://host/repository@sha256:<64 hex digits>';

/**
 * Parses `host[:port]/repository[:tag]`. Docker Hub's short forms are not known: a host is required.
 * @throws ModuleError `reference-invalid`
 */
export function parseImageName(text: string): ImageName {
  const slash = text.indexOf('/');
  if (slash === -1) {
    throw invalid(`it has no repository: expected ${FORM}`);
  }
  const written = text.slice(0, slash).toLowerCase();
  if (written.includes('@')) {
    throw invalid('it has credentials: remove them, and use the Docker config file of the policy server');
  }
  // URLs have one form for each host; otherwise 0x7f.1 would not be known to be 127.0.0.1.
  const host = HOST.test(written) ? URL.parse(`https://${written}`)?.host : undefined;
  if (host === undefined) {
    throw invalid(`the host is malformed: expected ${FORM}`);
  }
  const path = text.slice(slash + 1);
  const colon = path.lastIndexOf(':');
  const repository = colon === -1 ? path : path.slice(0, colon);
  const tag = colon === -1 ? undefined : path.slice(colon + 1);
  if (repository.length > MAX_REPOSITORY_LENGTH || !REPOSITORY.test(repository)) {
    throw invalid(
      `the repository is malformed: expected at most ${MAX_REPOSITORY_LENGTH} characters, lower-case letters, digits, ".", "_", "-" and "/"`,
    );
  }
  if (tag !== undefined && !TAG.test(tag)) {
    throw invalid('the tag is malformed: expected at most 128 letters, digits, ".", "_" and "-"');
  }
  return { host, repository, tag };
}

/**
 * Completes the name of an image as pods have it (`nginx`, `nginx:1.25`, `ghcr.io/a/b`) by Docker's rules: the default host is
 * Docker Hub, whose official images are in `library/`.
 */
export function completeImageName(text: string): string {
  const slash = text.indexOf('/');
  const first = slash === -1 ? '' : text.slice(0, slash);
  const hasHost = /[.:]/.test(first) || first === 'localhost';
  const [host, path] = hasHost ? [first, text.slice(slash + 1)] : [DOCKER_HUB, text];
  const name = DOCKER_HUB_NAMES.has(host.toLowerCase()) ? DOCKER_HUB : host;
  return name === DOCKER_HUB && !path.includes('/') ? `${name}/library/${path}` : `${name}/${path}`;
}

function invalid(problem: string): ModuleError {
  return new ModuleError('reference-invalid', `the reference names no artifact in a registry: ${problem}`);
}
