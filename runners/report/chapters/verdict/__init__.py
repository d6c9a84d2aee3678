"""Chapter Verdict, part by part: load, what to serve, whether speculation pays and why, the reported case."""
