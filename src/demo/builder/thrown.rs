//! An exception as the engine stores it: the object in events, the encoded copy on the
//! activity row, the preview on the failure row.

use serde_json::{Value as Json, json};

use super::blob;

/// What user code threw.
#[derive(Clone, Debug)]
pub struct Thrown {
    pub class: String,
    pub message: String,
    pub code: i64,
    pub file: String,
    pub line: u32,
    /// `Class->function` that called into the throwing line.
    pub thrower: String,
    pub non_retryable: bool,
}

impl Thrown {
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: class.into(),
            message: message.into(),
            code: 0,
            file: "/srv/shop/app/Support/Step.php".to_owned(),
            line: 41,
            thrower: r"App\Support\Step".to_owned(),
            non_retryable: false,
        }
    }

    #[must_use]
    pub fn code(mut self, code: i64) -> Self {
        self.code = code;
        self
    }

    #[must_use]
    pub fn at(mut self, file: &str, line: u32, thrower: &str) -> Self {
        file.clone_into(&mut self.file);
        thrower.clone_into(&mut self.thrower);
        self.line = line;
        self
    }

    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    pub fn json(&self) -> Json {
        json!({
            "class": self.class,
            "message": self.message,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "trace": [
                {"class": self.thrower, "type": "->", "function": "handle",
                 "file": "/srv/shop/vendor/durable-workflow/workflow/src/V2/Jobs/RunActivityTask.php", "line": 98},
                {"class": r"Workflow\V2\Jobs\RunActivityTask", "type": "->", "function": "handle",
                 "file": "/srv/shop/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php", "line": 36},
            ],
            "properties": [],
        })
    }

    pub fn encoded(&self) -> String {
        blob(&self.json())
    }

    pub fn trace_preview(&self) -> String {
        format!(
            "{}->handle @ /srv/shop/vendor/durable-workflow/workflow/src/V2/Jobs/RunActivityTask.php:98\n\
             Workflow\\V2\\Jobs\\RunActivityTask->handle @ /srv/shop/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php:36",
            self.thrower
        )
    }
}
