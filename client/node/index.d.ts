// A client of perceptrond, a server that learns perceptrons online. Messages of the API are objects in camelCase, as
// @grpc/proto-loader makes them: enums are names, 64-bit numbers are numbers (exact up to 2^53), absent figures are absent.

/** A number, -1 and +1 or of several classes the class from 0; or one of the model's names. */
export type Label = number | string;

/** Features by name, or in a Map by index, 0 to 2^32 - 1. Values are finite float32. */
export type Features = Record<string, number> | Map<string, number> | Map<number, number>;

/** Features; or for a model of texts a text; or, to learn a label that comes later, an id of Predictions. */
export type Input = { features: Features; text?: undefined; predictionId?: undefined } | { text: string; features?: undefined; predictionId?: undefined }
  | { predictionId: string; features?: undefined; text?: undefined };

export type Example = Input & {
  /** Required to learn, ignored by predictions. */
  label?: Label;
  /** The line of the file that it was read from, from 1, which errors name. */
  line?: number;
};

export type Examples = Iterable<Example> | AsyncIterable<Example>;

export interface PassSummary {
  number: number;
  examples: number;
  mistakes: number;
  updates: number;
  rowErrors: number;
  /** The pass made no update. */
  converged: boolean;
  margin?: number;
}

/** perceptron.v1.ConvergenceReport: report.proto says what each figure means. */
export interface ConvergenceReport {
  state: `CONVERGENCE_STATE_${'UNSPECIFIED' | 'LEARNING' | 'CONVERGED' | 'REFUTED' | 'NOT_SEPARABLE' | 'DRIFTING'}`;
  examples: number;
  mistakes: number;
  updates: number;
  streak: number;
  duplicates: number;
  lastPass?: PassSummary;
  [figure: string]: unknown;
}

/** What create() takes, as in model.proto. Ranges and defaults are there. */
export interface ModelSettings {
  featureSpace: { dense: { dimension: number } } | { hashed: { bits: number } } | { named: { maxFeatures?: number } } | { text: Record<string, unknown> } | Record<string, unknown>;
  /** That of -1 first; of several classes in their order. */
  labelNames?: string[];
  /** Default: the perceptron for two labels. */
  learner?: Record<string, unknown>;
  description?: string;
  marginOfInterest?: number;
  storedExamples?: Record<string, unknown>;
  storedPredictions?: Record<string, unknown>;
  /** The model is deleted once it was not used for this time. */
  expireAfter?: Duration;
}

export interface Duration {
  seconds: number;
  nanos?: number;
}

export interface Model extends Required<Pick<ModelSettings, 'featureSpace' | 'labelNames' | 'description' | 'marginOfInterest'>> {
  /** "models/spam" */
  name: string;
  uid: string;
  etag: string;
  state: 'MODEL_STATE_UNSPECIFIED' | 'MODEL_STATE_ACTIVE' | 'MODEL_STATE_FROZEN';
  /** The number of updates, which names a state of the weights. */
  revision: number;
  report: ConvergenceReport;
  [field: string]: unknown;
}

export interface Progress {
  /** From 1. */
  pass: number;
  /** The rows of this pass that were sent, those learned by an earlier run among them. */
  sent: number;
  /** The rows of a pass; absent for an iterator. */
  rows?: number;
  /** Present once the pass is complete. */
  lastPass?: PassSummary;
}

export interface LearnOptions {
  /**
   * The name of this sequence of examples, for good; 1 to 128 bytes. The server keeps its position, so that the same call,
   * after a failure of this program, learns the rest. Default: the examples are new, whatever was sent before.
   */
  producer?: string;
  /** At least 1. Default 1; with untilConverged the most, 1000. An iterator has one. */
  passes?: number;
  /** Stop after a pass without an update of any of the models. Default false. */
  untilConverged?: boolean;
  /** The most rows of a message, 1 to 65,536. Default 1000. */
  batch?: number;
  /** The most unanswered examples. Default 8192. */
  window?: number;
  onProgress?: (now: Progress) => void;
}

export interface Learned {
  /** Sums over the answers received; the model's report has those lost with a connection too. */
  totals: { examples: number; mistakes: number; updates: number; duplicates: number; rowErrors: number; /** Begins with "row 12", from 0, or "line 13" if Example.line is set. */ firstRowError: string; lostAnswers: number };
  /** The passes that the producer has completed: of several models those that all have. */
  passes: number;
  lastPass?: PassSummary;
  /** With several models, the outcomes of those after the first. */
  others: Learned[];
}

export interface Predictions {
  /** Names, if the model has any; else numbers. */
  labels: Label[];
  scores: number[];
  /** Empty for learners without probabilities. */
  probabilities: number[];
  /** With ids: one an example, for Example.predictionId. */
  ids: string[];
  /** The oldest state that predicted a row. */
  revision: number;
}

/** perceptron.v1.PredictResponse. */
export interface PredictResponse {
  scores: number[];
  predictedLabels: number[];
  distances: number[];
  probabilities: number[];
  revision: number;
  rowErrors: { row: number; status: { code: number; message: string } }[];
  [field: string]: unknown;
}

/** Thrown for what a server answers or does not answer. Wrong arguments are RangeError. */
export class PerceptrondError extends Error {
  /** gRPC's: "NOT_FOUND". */
  readonly code: string;
  /** "MODEL_NOT_FOUND", ...; empty if no server answered. */
  readonly reason: string;
  /** The invalid fields by their path in the request. */
  readonly violations: { field: string; description: string }[];
}

/**
 * A connection to a server, or to the servers of a fleet. Calls are repeated while the server is unreachable or asks to
 * wait. Models are named "spam" or "models/spam"; to read, predict and learn also by an alias, "aliases/prod".
 */
export class Client {
  /**
   * server: host:port, by default port 7600; host:port,host:port,... of a fleet; or unix:path. Default: $PERCEPTROND_SERVER, else 127.0.0.1:7600.
   * tlsCa: a file of certificate authorities to trust, with TLS. tokenFile: a file with a token to send, to this machine or
   * with TLS; default $PERCEPTRONCTL_TOKEN_FILE. giveUpAfter: seconds without progress before a call fails; default 60. A call that waits for 3 s warns.
   */
  constructor(server?: string, options?: { tlsCa?: string; tokenFile?: string; giveUpAfter?: number; onReconnect?: (error: PerceptrondError) => void });

  /** Ends the connection. */
  close(): void;

  /** Creates a model. RangeError for a setting that the API does not have. ALREADY_EXISTS, unless existOk: then the existing model is returned as it is. */
  create(model: string, settings: ModelSettings, options?: { existOk?: boolean }): Promise<Model>;
  /** NOT_FOUND (MODEL_NOT_FOUND). */
  get(model: string): Promise<Model>;
  report(model: string): Promise<ConvergenceReport>;
  /** In the order of their names. */
  list(): AsyncIterableIterator<Model>;
  /** Changes what is given: expireAfter undefined: the model stays. etag: of the model that is to be changed, else ABORTED. */
  update(model: string, changes: { description?: string; marginOfInterest?: number; expireAfter?: Duration; etag?: string }): Promise<Model>;
  /** NOT_FOUND, unless missingOk. */
  delete(model: string, options?: { missingOk?: boolean }): Promise<void>;
  /** Ends learning, or allows it again. */
  freeze(model: string, frozen?: boolean): Promise<Model>;

  /**
   * Learns examples, each exactly once a pass, also across restarts of the server. Rows with validation errors are left out and counted, with a warning of the process.
   * Several models, at most 64, learn them from one stream; with a producer each learns what it lacks. FAILED_PRECONDITION: FLEET_UNSUPPORTED, a fleet refuses
   * several; POSITIONS_DIFFER, without a producer, if one of them was created again: call again. INVALID_FIELD for a model that is named twice.
   */
  learn(model: string | readonly string[], examples: Examples, options?: LearnOptions): Promise<Learned>;

  /** Predicts all examples. Throws for the first row with a validation error. ids: the server keeps the features, if the model has storedPredictions. */
  predict(model: string, examples: Examples, options?: { batch?: number; ids?: boolean }): Promise<Predictions>;
  /** Yields rows with their answer, in order, as they come. */
  predictStream(model: string, examples: Examples, options?: { batch?: number; window?: number; ids?: boolean }): AsyncIterableIterator<[Example[], PredictResponse]>;
  /** What each feature contributes to the scores of at most 100 examples; maxFeatures: 1 to 10,000, default 20. */
  explain(model: string, examples: Example[], options?: { maxFeatures?: number }): Promise<{ explanations: Record<string, unknown>[]; revision: number }>;

  /** The model now and whenever its report has changed, until it is deleted or the timeout in seconds. interval: at least 0.05 s, default 1. */
  watch(model: string, options?: { interval?: number; timeout?: number }): AsyncIterableIterator<Model>;
  /** The model once it has converged. An Error when the timeout in seconds is over. */
  waitUntilConverged(model: string, options?: { timeout?: number }): Promise<Model>;
}
