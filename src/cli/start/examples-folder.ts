import { fileURLToPath } from 'node:url';

/** The folder `examples/` of the package. */
export const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));
