// The configuration of the image (https://github.com/opencontainers/image-spec/blob/main/config.md).
import { NODE_FLAGS } from '../../bin/find-node.mjs';
import { USER_ID } from './base-files.ts';
import type { Architecture } from './debian-packages.ts';
import { NODE_PATH, PRODUCT_FOLDER } from './product-files.ts';

/** Environment variables of the image; docs/performance.md has the figures. */
export const VARIABLES = {
  NODE_ENV: 'production',
  // glibc would keep freed memory in an arena for each of ten threads.
  MALLOC_ARENA_MAX: '2',
} as const;

/** A layer of the image. */
export interface Layer {
  readonly comment: string;
  /** The digest of the uncompressed layer. */
  readonly diffId: string;
}

/** What the image was built from. */
export interface Origin {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  /** The commit. */
  readonly revision: string;
  readonly created: Date;
}

export function labelsOf({
  version,
  description,
  license,
  revision,
  created,
}: Origin): Readonly<Record<string, string>> {
  return {
    'org.opencontainers.image.title': 'portcullis',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.created': timestamp(created),
    'org.opencontainers.image.licenses': license,
  };
}

export function platformOf(architecture: Architecture): object {
  return { architecture, os: 'linux', ...(architecture === 'arm64' ? { variant: 'v8' } : {}) };
}

export function imageConfig(architecture: Architecture, layers: readonly Layer[], origin: Origin): object {
  const created = timestamp(origin.created);
  return {
    created,
    ...platformOf(architecture),
    config: {
      User: `${USER_ID}:${USER_ID}`,
      Env: Object.entries({ PATH: '/usr/local/bin', ...VARIABLES }).map(([name, value]) => `${name}=${value}`),
      Entrypoint: [`/${NODE_PATH}`, ...NODE_FLAGS, `/${PRODUCT_FOLDER}/bin/portcullis.mjs`],
      Cmd: ['--help'],
      WorkingDir: '/',
      Labels: labelsOf(origin),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ comment }) => ({ created, created_by: 'npm run image', comment })),
  };
}

/** In whole seconds. */
export function timestamp(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
