//! flags > environment > file > defaults
