/** The default data folder of `portcullis start`, whose kubeconfig commands use when there is no other. */
export const DATA_DIR = '.portcullis';
